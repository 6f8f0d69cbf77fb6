"""What a person is told: where a text stands, or stood, and what becomes of it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from annabelle.hub.forgetting.memory import MatchedFact

Fate = Literal["deleted", "masked", "rewritten"]

# The tables of the hub and the memory, by the names people have for what is in them.
_NAMES = {
    "changes": "tidying up",
    "events": "events",
    "import_rows": "imports",
    "profile_history": "profile history",
    "profiles": "profile",
    "project_sources": "project sources",
    "threads": "names of chats",
    "tool_calls": "tool results",
}
_DELETED = ("facts", "conversations", "contacts", "projects", "imports", "backups")
_REWRITTEN = ("profile", "profile history", "exports", "remains of deleted rows")


@dataclass(frozen=True, slots=True)
class Place:
    """Rows, lines or files of one kind."""

    name: str
    count: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was found. `own` are files of the person, which are never touched."""

    places: tuple[Place, ...]
    facts: tuple[MatchedFact, ...] = ()
    own: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(place.count for place in self.places)


def places_of(*counts: Mapping[str, int]) -> tuple[Place, ...]:
    """All counts under the names people know, those that vanish first."""
    summed: dict[str, int] = {}
    for found in counts:
        for table, count in found.items():
            name = _NAMES.get(table, table.replace("_", " "))
            summed[name] = summed.get(name, 0) + count
    fates: list[Place] = [Place(name, count, _fate(name)) for name, count in summed.items() if count]
    return tuple(sorted(fates, key=lambda place: (place.fate, place.name)))


def _fate(name: str) -> Fate:
    return "deleted" if name in _DELETED else "rewritten" if name in _REWRITTEN else "masked"
