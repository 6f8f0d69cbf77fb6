"""Why a fact is known: what was said where it came from, and what it was before and after."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from annabelle.core.tools import JsonObject
from annabelle.store.memory import conversations, facts
from annabelle.store.memory.conversations import Turn
from annabelle.store.memory.facts import Fact
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import conversations as turns

MAX_CHAIN = 50


@dataclass(frozen=True, slots=True)
class History:
    """A fact among those before and after it."""

    fact: Fact
    earlier: tuple[Fact, ...]
    """What it took the place of, and what those took the place of, the latest first."""
    later: tuple[Fact, ...]
    """What took its place, up to the one that is current."""
    said: Turn | None
    """The turn it was learnt in, when that is still remembered."""


def history(connection: Connection, owner: Owner, fact: Fact) -> History:
    """Everything that explains a fact."""
    return History(
        fact, _earlier(connection, owner, fact), _later(connection, owner, fact), _said(connection, owner, fact)
    )


def _earlier(connection: Connection, owner: Owner, fact: Fact) -> tuple[Fact, ...]:
    found: dict[int, Fact] = {}
    wanted = [fact.id]
    while wanted and len(found) < MAX_CHAIN:
        replaced = [old for number in wanted for old in facts.replaced_by(connection, owner, number)]
        wanted = [old.id for old in replaced if old.id not in found and old.id != fact.id]
        found |= {old.id: old for old in reversed(replaced) if old.id in wanted}
    return tuple(found.values())


def _later(connection: Connection, owner: Owner, fact: Fact) -> tuple[Fact, ...]:
    found: dict[int, Fact] = {}
    number = fact.superseded_by
    while number is not None and number not in found and number != fact.id and len(found) < MAX_CHAIN:
        after = facts.get(connection, owner, [number]).get(number)
        if after is None:
            break
        found[number] = after
        number = after.superseded_by
    return tuple(found.values())


def _said(connection: Connection, owner: Owner, fact: Fact) -> Turn | None:
    origin: JsonObject = fact.origin
    number, message_id = origin.get("conversation_id"), origin.get("message_id")
    if not isinstance(number, int) and isinstance(message_id, str):
        query = select(turns.c.id).where(owner.of(turns), turns.c.message_id == message_id)
        number = connection.execute(query).scalar()
    return conversations.get(connection, owner, [number]).get(number) if isinstance(number, int) else None
