"""Where vectors that somebody charges for are booked. Light: what books them is loaded with the provider itself."""

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
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Books:
    """Where requests are booked, and under whose name."""

    ledger: Ledger
    name: str


def is_charged(config: EmbeddingConfig) -> bool:
    """Whether somebody may be paid for the vectors: OpenAI always, another server unless it is on this machine."""
    elsewhere = urlsplit(config.base_url).hostname not in _LOOPBACK
    return config.provider == "openai" or (config.provider == "compatible" and elsewhere)


def books_of_server(name: str, config: EmbeddingConfig) -> Books | None:
    """The books of a server that the hub has started; None for one that runs on its own, or is charged nothing."""
    url, token = os.environ.get(LEDGER_URL), os.environ.get(LEDGER_TOKEN)
    if not url or not token or not is_charged(config):
        return None
    return Books(importlib.import_module("annabelle.embeddings.http_ledger").HttpLedger(url, token), name)
