"""The table of our own tools, as it was reviewed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, cast

from annabelle.core.tools import JsonObject
from annabelle.core.trust import ToolClass
from annabelle.policy.tools.traits import Traits

HUB: Final = "hub"
_SHARED: Final = ("source", "private", "trusted")


@cache
def reviewed_tools() -> Mapping[str, Traits]:
    """What is known of each tool, by the name it is called with. It speaks of our own servers alone."""
    text = files(__package__ or __name__).joinpath("reviewed.toml").read_text(encoding="utf-8")
    table: dict[str, Traits] = {}
    for server, section in cast("dict[str, JsonObject]", tomllib.loads(text)).items():
        shared = {name: section[name] for name in _SHARED if name in section}
        read = _traits(shared | {"classes": _reading(shared)})
        own = Traits(source="own", trusted=True)
        for names, traits in ((section.get("reads"), read), (section.get("owns"), own)):
            table |= {_name(server, name): traits for name in cast("list[str]", names or [])}
        for name, entry in section.items():
            if isinstance(entry, dict):
                table[_name(server, name)] = _traits(shared | cast("JsonObject", entry))
    return MappingProxyType(table)


def _traits(entry: JsonObject) -> Traits:
    known = {"given" if name == "with" else name: _frozen(value) for name, value in entry.items()}
    return Traits(**cast("dict[str, Any]", known))


def _frozen(value: object) -> object:
    if isinstance(value, list):
        return tuple(cast("list[object]", value))
    if isinstance(value, dict):
        return {name: _frozen(one) for name, one in cast("JsonObject", value).items()}
    return value


def _name(server: str, tool: str) -> str:
    return tool if server == HUB else f"{server}_{tool}"


def _reading(shared: JsonObject) -> list[ToolClass]:
    if shared.get("trusted"):
        return ["read_private"] if shared.get("private") else []
    return ["read_private", "read_untrusted"] if shared.get("private") else ["read_untrusted"]
