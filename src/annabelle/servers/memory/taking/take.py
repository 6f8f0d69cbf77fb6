"""Takes every row of a file in, in the order they depend on each other."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import cast

from annabelle.servers.memory.files.rows import (
    AnyRow,
    ContactEntry,
    ContactRow,
    FactLine,
    FactRow,
    Listing,
    ProfilePage,
    ProfileRow,
    ProjectEntry,
    ProjectRow,
    SourceRow,
    TurnRow,
    VersionRow,
)
from annabelle.servers.memory.taking.facts import TakeFacts
from annabelle.servers.memory.taking.people import TakePeople
from annabelle.servers.memory.taking.profile import TakeProfile
from annabelle.servers.memory.taking.tally import Taking
from annabelle.store.memory import adopting


def take(taking: Taking, rows: Iterable[AnyRow]) -> None:
    """All or nothing: whatever is raised here ends the transaction."""
    turns: dict[int, int] = {}
    people, profile, facts = TakePeople(taking), TakeProfile(taking), TakeFacts(taking, turns)
    for kind, group in groupby(rows, key=lambda row: row.kind):
        if kind == "fact":  # many: taken in parts
            facts.rows(cast("Iterable[FactRow]", group))
        elif kind == "line":
            facts.lines(cast("Iterable[FactLine]", group))
        else:
            for row in group:
                _one(row, taking, people, profile, facts, turns)


def _one(
    row: AnyRow, taking: Taking, people: TakePeople, profile: TakeProfile, facts: TakeFacts, turns: dict[int, int]
) -> None:
    match row:
        case ContactRow():
            people.contact(row)
        case ContactEntry():
            people.contact_entry(row)
        case ProjectRow():
            people.project(row)
        case ProjectEntry():
            people.project_entry(row)
        case SourceRow():
            people.source(row)
        case VersionRow():
            profile.version(row)
        case ProfileRow():
            profile.row(row)
        case ProfilePage():
            profile.page(row)
        case TurnRow():
            _turn(row, taking, turns)
        case FactLine():
            facts.lines([row])
        case Listing():
            facts.listing(row)
        case FactRow():
            facts.rows([row])


def _turn(row: TurnRow, taking: Taking, turns: dict[int, int]) -> None:
    values = row.model_dump(exclude={"kind", "id"}, exclude_none=True)
    values |= {"trust": taking.label(row.trust)}
    known = adopting.known_turn(taking.connection, taking.owner, values)
    number = adopting.add_turn(taking.connection, taking.owner, values) if known is None else known
    if row.id is not None:
        turns[row.id] = number
    taking.tally.count("conversations", "added" if known is None else "known")
