"""What is known of a tool: what it can do at worst, whose words it gives back, and what its arguments mean."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.core.trust import Source, ToolClass
from annabelle.policy.intent.kinds import ActionKind

HUB: Final = "hub"


class Traits(BaseModel):
    """One tool. Of the arguments only those that mean something to policy are named."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    classes: tuple[ToolClass, ...] = ()
    source: Source = "external"
    private: bool = False
    trusted: bool = Field(default=False, description="What it gives back is Annabelle's own: a clock, a sum")
    wants: tuple[ActionKind, ...] = ()
    enough: tuple[ActionKind, ...] = ()
    about: tuple[str, ...] = ()
    noun_is_enough: bool = False
    to: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    payload: tuple[str, ...] = ()
    refs: tuple[str, ...] = Field(default=(), description="Elements of the page in the browser")
    typed: tuple[str, ...] = Field(default=(), description="What is put into such an element")
    everyone: tuple[str, ...] = Field(default=(), description="Flags that send it to more people than one")
    replaces: tuple[str, ...] = Field(default=(), description="Flags that let it replace what is there")
    tells: tuple[str, ...] = Field(default=(), description="Fields of the thing whose people are told")
    existing: bool = Field(default=False, description="It changes something that is there")
    given: dict[str, tuple[ToolClass, ...]] = Field(default_factory=dict, alias="with")
    harmless: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="Values that only look")
    ruinous: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="Values that make it a deletion")
    known: bool = Field(default=True, description="Reviewed by us, rather than guessed from what its server says")

    def classes_of(self, arguments: JsonObject) -> tuple[ToolClass, ...]:
        """What this call of it can do at worst."""
        if any(arguments.get(name) in looks for name, looks in self.harmless.items()):
            return ("read_untrusted",)
        more: list[ToolClass] = [
            found for name, classes in self.given.items() if arguments.get(name) for found in classes
        ]
        if any(worst in str(arguments.get(name)).upper() for name, values in self.ruinous.items() for worst in values):
            more.append("destroy")
        every: dict[ToolClass, None] = dict.fromkeys((*self.classes, *more))
        return tuple(every)


@dataclass(frozen=True, slots=True)
class ToolTable:
    """The reviewed tools, by exposed name."""

    reviewed: Mapping[str, Traits] = field(default_factory=dict[str, Traits])

    def of(self, tool: ToolSpec, *, ours: bool = True) -> Traits | None:
        """What is known of a tool. The table speaks only of our own servers, whatever another one calls itself."""
        return self.reviewed.get(tool.name) if ours else None


def reviewed_tools() -> ToolTable:
    """The table as it is kept beside this file."""
    text = files(__package__ or __name__).joinpath("reviewed.toml").read_text(encoding="utf-8")
    table: dict[str, Traits] = {}
    for server, section in cast("dict[str, JsonObject]", tomllib.loads(text)).items():
        shared = {name: section[name] for name in ("source", "private", "trusted") if name in section}
        read = Traits.model_validate(shared | {"classes": _reading(shared)})
        own = Traits(classes=(), source="own", trusted=True)
        for names, traits in ((section.get("reads"), read), (section.get("owns"), own)):
            table |= {_name(server, name): traits for name in cast("list[str]", names or [])}
        for name, entry in section.items():
            if isinstance(entry, dict):
                one = Traits.model_validate(shared | cast("JsonObject", entry))
                table[_name(server, name)] = one
    return ToolTable(table)


def _name(server: str, tool: str) -> str:
    return tool if server == HUB else f"{server}_{tool}"


def _reading(shared: JsonObject) -> tuple[ToolClass, ...]:
    if shared.get("trusted"):
        return ("read_private",) if shared.get("private") else ()
    return ("read_private", "read_untrusted") if shared.get("private") else ("read_untrusted",)
