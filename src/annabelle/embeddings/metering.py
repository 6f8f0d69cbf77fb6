"""Which embedding requests cost money, and their ledger. Cheap to import: metering is loaded with the provider."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from annabelle.embeddings.config import EmbeddingConfig

if TYPE_CHECKING:
    from annabelle.core.ports import Ledger


PURPOSE: Final = "embedding"
LEDGER_URL: Final = "ANNABELLE_LEDGER_URL"
LEDGER_TOKEN: Final = "ANNABELLE_LEDGER_TOKEN"  # noqa: S105  a variable's name
_LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class EmbeddingMeter:
    """The ledger, and the name that calls are recorded under."""

    ledger: Ledger
    name: str


def is_charged(config: EmbeddingConfig) -> bool:
    """Whether vectors may cost money: always at OpenAI, and at other servers unless they are local."""
    elsewhere = urlsplit(config.base_url).hostname not in _LOOPBACK_HOSTS
    return config.provider == "openai" or (config.provider == "compatible" and elsewhere)


def make_server_meter(name: str, config: EmbeddingConfig) -> EmbeddingMeter | None:
    """Makes the meter of a server started by the hub; None for a standalone one, or if nothing is charged."""
    url, token = os.environ.get(LEDGER_URL), os.environ.get(LEDGER_TOKEN)
    if not url or not token or not is_charged(config):
        return None
    return EmbeddingMeter(importlib.import_module("annabelle.embeddings.http_ledger").HttpLedger(url, token), name)
