"""The settings as one server sees them: its own variables, and the defaults of all others."""

from __future__ import annotations

from pydantic import ValidationError

from annabelle.core.errors import ConfigMistake
from annabelle.core.settings import Settings


def own_settings() -> Settings:
    """What this process's environment says. A variable the manifest does not name never reaches the process, so
    every setting of other servers, their secrets above all, reads as its default here."""
    try:
        return Settings()  # pyright: ignore[reportCallIssue]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0]).upper() if first["loc"] else "settings"
        raise ConfigMistake(f"{name} is not valid: {first['msg']}.", field=name) from error
