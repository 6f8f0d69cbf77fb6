"""The addresses of the services in the user's settings."""

from __future__ import annotations

from urllib.parse import urlsplit

from annabelle.core.errors import ConfigMistake


def host_and_port(setting: str, url: str) -> tuple[str, int]:
    """Where a service is; a setting that names no place is the person's mistake."""
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
