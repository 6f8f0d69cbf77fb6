"""Known providers, and their addresses and keys under the current settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from annabelle.core.settings import Settings
from annabelle.llm.types import ProviderName


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """Fixed properties of a provider; the `…_variable` names are the settings that change it."""

    name: ProviderName
    label: str
    protocol: Literal["openai", "anthropic"]
    address: str = ""
    needs_key: bool = False
    local: bool = False

    @property
    def key_variable(self) -> str:
        return f"{self.name.upper()}_API_KEY"

    @property
    def model_variable(self) -> str:
        return f"{self.name.upper()}_MODEL"

    @property
    def url_variable(self) -> str:
        return f"{self.name.upper()}_BASE_URL"


PROVIDERS: dict[ProviderName, ModelProvider] = {
    provider.name: provider
    for provider in (
        ModelProvider("groq", "Groq", "openai", "https://api.groq.com/openai/v1", needs_key=True),
        ModelProvider("anthropic", "Anthropic", "anthropic", "https://api.anthropic.com", needs_key=True),
        ModelProvider("openai", "OpenAI", "openai", "https://api.openai.com/v1", needs_key=True),
        ModelProvider("openrouter", "OpenRouter", "openai", "https://openrouter.ai/api/v1", needs_key=True),
        ModelProvider("ollama", "Ollama", "openai", "http://127.0.0.1:11434/v1", local=True),
        ModelProvider("lmstudio", "LM Studio", "openai", "http://127.0.0.1:1234/v1", local=True),
        ModelProvider("compatible", "the OpenAI-compatible server", "openai", "http://127.0.0.1/v1"),
        ModelProvider("embedded", "the embedded engine", "openai", local=True),
    )
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    provider: ModelProvider
    base_url: str
    key: SecretStr | None = None

    @property
    def is_official(self) -> bool:
        """Whether this is the provider's own address, not a proxy."""
        return self.base_url == self.provider.address

    @property
    def key_text(self) -> str:
        return self.key.get_secret_value() if self.key is not None else ""


def _setting(settings: Settings, name: str) -> object:
    return cast("object", getattr(settings, name, None))


def configured_key(settings: Settings, provider: ModelProvider) -> SecretStr | None:
    value = _setting(settings, provider.key_variable.lower())
    return value if isinstance(value, SecretStr) and value.get_secret_value().strip() else None


def configured_model(settings: Settings, provider: ModelProvider) -> str:
    """The configured model; may be empty for providers that can list theirs."""
    return str(_setting(settings, provider.model_variable.lower()) or "")


def make_endpoint(settings: Settings, provider: ModelProvider) -> Endpoint:
    """Resolves a provider's address and key. An address without a path gets the usual one of its protocol."""
    address = str(_setting(settings, provider.url_variable.lower()) or provider.address).rstrip("/")
    if provider.protocol == "anthropic":
        address = address.removesuffix("/v1")  # the SDK adds the version
    elif urlsplit(address).path in ("", "/"):
        address += urlsplit(provider.address).path
    return Endpoint(provider, address, configured_key(settings, provider))


def is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
