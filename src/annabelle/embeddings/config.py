"""Configuration of embeddings, from settings or a server's environment."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic import SecretStr

from annabelle.core.errors import ConfigMistake

if TYPE_CHECKING:
    from annabelle.core.settings import Settings

EmbeddingProvider = Literal["embedded", "ollama", "lmstudio", "openai", "compatible", "none"]

VARIABLES = (
    "EMBEDDING_PROVIDER",
    "EMBEDDING_MODEL",
    "EMBEDDING_BASE_URL",
    "EMBEDDING_API_KEY",
    "EMBEDDING_TIMEOUT_SECONDS",
    "OLLAMA_BASE_URL",
    "LMSTUDIO_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "COMPATIBLE_BASE_URL",
    "COMPATIBLE_API_KEY",
)
"""Settings that a server needs to make vectors."""

_ADDRESSES: Mapping[EmbeddingProvider, str] = {
    "ollama": "http://127.0.0.1:11434",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "openai": "https://api.openai.com/v1",
}
_MODELS: Mapping[EmbeddingProvider, str] = {
    "embedded": "l2_supercat_256",
    "ollama": "nomic-embed-text",
    "openai": "text-embedding-3-small",
}


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """A provider with its settings. An empty model is looked up at the provider."""

    provider: EmbeddingProvider = "embedded"
    model: str = "l2_supercat_256"
    base_url: str = ""
    api_key: SecretStr | None = None
    timeout: float = 10

    @classmethod
    def from_settings(cls, settings: Settings) -> EmbeddingConfig:
        return _resolve(lambda name: _setting_text(getattr(settings, name.lower(), None)))

    @classmethod
    def from_environment(cls) -> EmbeddingConfig:
        """For servers, which see only some variables and not all settings."""
        return _resolve(lambda name: os.environ.get(name, "").strip())


def _setting_text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value().strip()
    return "" if value is None else str(value).strip()


def _resolve(get: Callable[[str], str]) -> EmbeddingConfig:
    provider = _parse_provider(get("EMBEDDING_PROVIDER") or "embedded")
    own = provider.upper()
    key = get("EMBEDDING_API_KEY") or get(f"{own}_API_KEY")
    return EmbeddingConfig(
        provider=provider,
        # There is one embedded model: a name meant for another provider does not apply to it.
        model=_MODELS["embedded"] if provider == "embedded" else get("EMBEDDING_MODEL") or _MODELS.get(provider, ""),
        base_url=_parse_address(provider, get("EMBEDDING_BASE_URL") or get(f"{own}_BASE_URL")),
        api_key=SecretStr(key) if key else None,
        timeout=_parse_seconds(get("EMBEDDING_TIMEOUT_SECONDS") or "10"),
    )


def _parse_provider(value: str) -> EmbeddingProvider:
    known = get_args(EmbeddingProvider)
    if value.lower() not in known:
        raise ConfigMistake(
            f"EMBEDDING_PROVIDER must be one of {', '.join(known)}, not {value!r}.", field="EMBEDDING_PROVIDER"
        )
    return cast("EmbeddingProvider", value.lower())


def _parse_address(provider: EmbeddingProvider, value: str) -> str:
    """Removes a trailing slash, and adds the usual path of the protocol."""
    if provider in ("embedded", "none"):
        return ""
    address = (value or _ADDRESSES.get(provider, "")).rstrip("/")
    if provider == "ollama":
        return address.removesuffix("/v1")  # the setting is shared with chat, which uses another protocol
    return f"{address}/v1" if address and urlsplit(address).path == "" else address


def _parse_seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ConfigMistake(
            f"EMBEDDING_TIMEOUT_SECONDS must be a number of seconds above 0, not {value!r}.",
            field="EMBEDDING_TIMEOUT_SECONDS",
        )
    return seconds
