"""Which embedding requests cost money, and the ledger they are metered in. Cheap to import: what does the metering is
loaded with the provider.
"""

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
    """Where requests are booked, and under whose name."""

    ledger: Ledger
    name: str


def is_charged(config: EmbeddingConfig) -> bool:
    """Whether somebody may be paid for the vectors: OpenAI always, another server unless it is on this machine."""
    elsewhere = urlsplit(config.base_url).hostname not in _LOOPBACK_HOSTS
    return config.provider == "openai" or (config.provider == "compatible" and elsewhere)


def make_server_meter(name: str, config: EmbeddingConfig) -> EmbeddingMeter | None:
    """The books of a server that the hub has started; None for one that runs on its own, or is charged nothing."""
    url, token = os.environ.get(LEDGER_URL), os.environ.get(LEDGER_TOKEN)
    if not url or not token or not is_charged(config):
        return None
    return EmbeddingMeter(importlib.import_module("annabelle.embeddings.http_ledger").HttpLedger(url, token), name)
