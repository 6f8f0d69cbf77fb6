"""Settings of the everyday server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.network_access import AllowedPrivateHosts
from annabelle.servers.kit import own_settings
from annabelle.servers.kit.files.config import FilesConfig


def host_and_port(setting: str, url: str) -> tuple[str, int]:
    """The address of a service; ConfigMistake if the setting is not one."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigMistake(f"{setting} must be an http or https address.", field=setting) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigMistake(f"{setting} must be an http or https address.", field=setting)
    try:
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except ValueError as error:
        raise ConfigMistake(f"{setting} has a port that is none.", field=setting) from error
    return parts.hostname, port


@dataclass(frozen=True, slots=True)
class EverydayConfig:
    """The services to use, and a clock that tests can replace."""

    files: FilesConfig
    folder: Path
    zone: str = "UTC"
    weather_url: str = "https://api.open-meteo.com"
    geocoding_url: str = "https://geocoding-api.open-meteo.com"
    currency_url: str = "https://api.frankfurter.dev"
    private_hosts: str = ""
    clock: Callable[[], datetime] = field(default=now)

    @classmethod
    def from_environment(cls) -> EverydayConfig:
        settings = own_settings()
        for name in ("weather_url", "geocoding_url", "currency_url"):
            host_and_port(name.upper(), getattr(settings, name))
        AllowedPrivateHosts.parse(settings.private_hosts_allowed)
        return cls(
            files=FilesConfig.from_environment(),
            folder=Home.from_environment().data / "everyday",
            zone=settings.user_timezone,
            weather_url=settings.weather_url,
            geocoding_url=settings.geocoding_url,
            currency_url=settings.currency_url,
            private_hosts=settings.private_hosts_allowed,
        )
