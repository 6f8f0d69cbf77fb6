"""Makes the configured embedder."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from urllib.parse import urlsplit

from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import Embedder, ModelName, UnavailableEmbedder
from annabelle.embeddings.metering import EmbeddingMeter

_log = logging.getLogger(__name__)


def make_embedder(config: EmbeddingConfig, cache_folder: Path | None, books: EmbeddingMeter | None = None) -> Embedder:
    """Makes an embedder. One that cannot work raises at each call, with a hint. Charged requests are metered."""
    inner = _make_uncached(config, cache_folder, books)
    if cache_folder is None or config.provider == "embedded" or isinstance(inner, UnavailableEmbedder):
        return inner  # the embedded model is faster than the disk
    return importlib.import_module("annabelle.embeddings.cache").CachedEmbedder(inner, cache_folder)


def _make_uncached(config: EmbeddingConfig, folder: Path | None, books: EmbeddingMeter | None) -> Embedder:
    model = ModelName(config.provider, config.model)
    missing = _find_missing_setting(config)
    if missing is not None:
        return UnavailableEmbedder(model, *missing)
    module = "embedded_model" if config.provider == "embedded" else "http_providers"
    # Providers load numpy, the vocabulary or the network client, so only the one in use is imported.
    try:
        return importlib.import_module(f"annabelle.embeddings.{module}").make(config, folder, books)
    except ImportError as error:
        _log.exception("A library for embeddings can not be loaded.")
        return UnavailableEmbedder(
            model,
            f"A library for embeddings can not be loaded: {error}.",
            "Install Annabelle again and restart it; until then search goes by words alone.",
        )


def _find_missing_setting(config: EmbeddingConfig) -> tuple[str, str] | None:
    """Returns a sentence about a missing setting, and a hint."""
    own = config.provider.upper()
    if config.provider == "none":
        return "Embeddings are switched off.", "Set EMBEDDING_PROVIDER=embedded to search by meaning too."
    if config.provider == "embedded":
        return None
    if config.provider == "openai" and config.api_key is None:
        return "Embeddings by OpenAI need a key.", "Set OPENAI_API_KEY, or EMBEDDING_PROVIDER=embedded to do without."
    if config.api_key is not None and not _is_sendable(config.api_key.get_secret_value()):
        return "The key for embeddings holds characters that no key has.", "Copy it again, without quotes or spaces."
    if not config.base_url:
        return "The address for embeddings is not set.", f"Set {own}_BASE_URL or EMBEDDING_BASE_URL."
    if not _is_address(config.base_url):
        return (
            "The address for embeddings is not an address.",
            f"Set EMBEDDING_BASE_URL or {own}_BASE_URL to something like http://127.0.0.1:1234/v1.",
        )
    return None


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _is_sendable(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key
