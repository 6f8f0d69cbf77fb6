"""What is known of a tool: what it can do at worst, whose words it gives back, and what its arguments mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from annabelle.core.tools import JsonObject
from annabelle.core.trust import Source, ToolClass
from annabelle.policy.intent.kinds import ActionKind


@dataclass(frozen=True, slots=True)
class Traits:
    """One tool. Of the arguments only those that mean something to policy are named; reviewed.toml says how."""

    classes: tuple[ToolClass, ...] = ()
    source: Source = "external"
    private: bool = False
    trusted: bool = False
    """What it gives back is Annabelle's own: a clock, a sum."""
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
    shown: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    everyone: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    existing: bool = False
    within: tuple[str, ...] = ()
    spreads: bool = False
    keeps: bool = False
    rewrites: tuple[str, ...] = ()
    adds: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    given: Mapping[str, tuple[ToolClass, ...]] = field(default_factory=dict[str, tuple[ToolClass, ...]])
    harmless: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    ruinous: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    known: bool = True
    """Reviewed by us, rather than guessed from what its server says."""

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
