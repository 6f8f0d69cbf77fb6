"""Exactly what each server gets to see of the environment: little by default, and no one else's secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from annabelle.core.failpoints import VARIABLE as FAILPOINTS
from annabelle.core.home import HOME_VARIABLE, Home

_BUILTIN = ("PATH", "HOME", "LANG", "TZ")
_EXTERNAL = ("PATH", "HOME", "LANG", "USER", "TERM")
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Unresolved(Exception):
    """A `${NAME}` whose variable is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the variable {name} is not set")
        self.name = name


def builtin_environment(names: Iterable[str], hub: Mapping[str, str], home: Home, log_level: str) -> dict[str, str]:
    """What every built-in server gets, and what its manifest asks for."""
    chosen = {name: hub[name] for name in (*_BUILTIN, FAILPOINTS, *names) if name in hub}
    return chosen | {HOME_VARIABLE: str(home.root), "LOG_LEVEL": log_level}


def external_environment(own: Mapping[str, str], hub: Mapping[str, str]) -> dict[str, str]:
    """What a program needs to run at all, and what the user wrote into its entry."""
    return {name: hub[name] for name in _EXTERNAL if name in hub} | dict(own)


def resolve(text: str, hub: Mapping[str, str]) -> str:
    """Put the hub's variables into `${NAME}`; raises Unresolved for one that is not set."""

    def value(match: re.Match[str]) -> str:
        if match.group(1) not in hub:
            raise Unresolved(match.group(1))
        return hub[match.group(1)]

    return _PLACEHOLDER.sub(value, text)
