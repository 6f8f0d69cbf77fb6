"""Settings of the searcher."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from annabelle.core.errors import ConfigMistake
from annabelle.core.settings import Settings
from annabelle.servers.kit import own_settings
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.host_access import AllowedPrivateHosts


@dataclass(frozen=True, slots=True)
class SearcherConfig:
    """Search providers, their rate, and limits for pages."""

    files: FilesConfig
    brave_key: str | None = field(default=None, repr=False)
    brave_url: str = "https://api.search.brave.com"
    brave_spacing: float = 1.1
    searxng_url: str = field(default="", repr=False)
    """May hold a user name and password."""
    without_key: bool = True
    private_hosts: AllowedPrivateHosts = field(default_factory=AllowedPrivateHosts)
    max_length: int = 20_000
    max_bytes: int = 10_000_000
    robots: bool = True

    @classmethod
    def from_environment(cls) -> SearcherConfig:
        return cls.from_settings(own_settings(), FilesConfig.from_environment())

    @classmethod
    def from_settings(cls, settings: Settings, files: FilesConfig) -> SearcherConfig:
        key = settings.brave_api_key
        return cls(
            files=files,
            brave_key=key.get_secret_value().strip() or None if key else None,
            brave_url=_web_address(settings.brave_base_url, "BRAVE_BASE_URL"),
            brave_spacing=settings.brave_rate_limit_ms / 1000,
            searxng_url=_web_address(settings.searxng_url, "SEARXNG_URL"),
            without_key=settings.search_without_key,
            private_hosts=AllowedPrivateHosts.parse(settings.private_hosts_allowed),
            max_length=settings.web_fetch_max_length,
            max_bytes=settings.web_fetch_max_bytes,
            robots=settings.web_fetch_robots,
        )


def _web_address(text: str, variable: str) -> str:
    """The address without a slash at its end; empty stays empty."""
    try:
        parts = urlsplit(text.strip())
        usable = not parts.geturl() or (parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigMistake(f"{variable} must be an address such as https://search.example.", field=variable)
    return text.strip().rstrip("/")
