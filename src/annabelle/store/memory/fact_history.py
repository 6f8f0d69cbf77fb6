"""Where a fact comes from, what came before and after it, and bulk changes that can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, RowMapping, insert, select, update

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.memory import conversations, facts
from annabelle.store.memory.conversations import StoredTurn
from annabelle.store.memory.facts import Fact
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import load_row
from annabelle.store.memory.tables import changes, conversations as turns

MAX_CHAIN = 50


@dataclass(frozen=True, slots=True)
class FactHistory:
    fact: Fact
    earlier: tuple[Fact, ...]
    """What it replaced, and what those replaced, latest first."""
    later: tuple[Fact, ...]
    """What replaced it, up to the current one."""
    said: StoredTurn | None
    """The turn it was learnt in, if still stored."""


def read_fact_history(connection: Connection, owner: Owner, fact: Fact) -> FactHistory:
    return FactHistory(
        fact,
        _earlier_facts(connection, owner, fact),
        _later_facts(connection, owner, fact),
        _source_turn(connection, owner, fact),
    )


def _earlier_facts(connection: Connection, owner: Owner, fact: Fact) -> tuple[Fact, ...]:
    found: dict[int, Fact] = {}
    wanted = [fact.id]
    while wanted and len(found) < MAX_CHAIN:
        replaced = [old for number in wanted for old in facts.list_replaced_by(connection, owner, number)]
        wanted = [old.id for old in replaced if old.id not in found and old.id != fact.id]
        found |= {old.id: old for old in reversed(replaced) if old.id in wanted}
    return tuple(found.values())


def _later_facts(connection: Connection, owner: Owner, fact: Fact) -> tuple[Fact, ...]:
    found: dict[int, Fact] = {}
    number = fact.superseded_by
    while number is not None and number not in found and number != fact.id and len(found) < MAX_CHAIN:
        after = facts.get_facts(connection, owner, [number]).get(number)
        if after is None:
            break
        found[number] = after
        number = after.superseded_by
    return tuple(found.values())


def _source_turn(connection: Connection, owner: Owner, fact: Fact) -> StoredTurn | None:
    origin: JsonObject = fact.origin
    number, message_id = origin.get("conversation_id"), origin.get("message_id")
    if not isinstance(number, int) and isinstance(message_id, str):
        query = select(turns.c.id).where(owner.row_filter(turns), turns.c.message_id == message_id)
        number = connection.execute(query).scalar()
    return conversations.get_turns(connection, owner, [number]).get(number) if isinstance(number, int) else None


_columns = changes.c


@dataclass(frozen=True, slots=True)
class FactChangePart:
    """One part of a change: the facts it retired, and the one it made, if any."""

    kind: str
    retired: tuple[int, ...]
    made: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class FactChange:
    id: int
    kind: str
    summary: str
    done: tuple[FactChangePart, ...]
    made_at: datetime
    undone_at: datetime | None

    @property
    def retired(self) -> list[int]:
        return [fact_id for part in self.done for fact_id in part.retired]

    @property
    def made(self) -> list[int]:
        return [part.made for part in self.done if part.made is not None]


def add_change(
    connection: Connection, owner: Owner, kind: str, summary: str, done: Sequence[FactChangePart]
) -> FactChange:
    values = {"kind": kind, "summary": summary, "actions": [asdict(part) for part in done], "made_at": now()}
    query = insert(changes).values({**owner.columns(), **values}).returning(changes)
    return _change_from_row(connection.execute(query).mappings().one())


def get_change(connection: Connection, owner: Owner, change_id: int) -> FactChange | None:
    query = select(changes).where(owner.row_filter(changes), _columns.id == change_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else _change_from_row(row)


def last_change(connection: Connection, owner: Owner) -> FactChange | None:
    """Returns the latest change that was not undone."""
    query = select(changes).where(owner.row_filter(changes), _columns.undone_at.is_(None))
    row = connection.execute(query.order_by(_columns.id.desc()).limit(1)).mappings().first()
    return None if row is None else _change_from_row(row)


def list_changes(connection: Connection, owner: Owner, limit: int = 20) -> list[FactChange]:
    """Lists changes, newest first."""
    query = select(changes).where(owner.row_filter(changes)).order_by(_columns.id.desc()).limit(limit)
    return [_change_from_row(row) for row in connection.execute(query).mappings()]


def mark_change_undone(connection: Connection, owner: Owner, change_id: int) -> None:
    connection.execute(
        update(changes).where(owner.row_filter(changes), _columns.id == change_id).values(undone_at=now())
    )


def _change_from_row(row: RowMapping) -> FactChange:
    done = tuple(_load_part(part) for part in cast("list[JsonObject]", row["actions"]))
    return load_row(FactChange, {**row, "done": done})


def _load_part(part: JsonObject) -> FactChangePart:
    """A word that was forgotten may have been part of a field's name."""
    retired = cast("list[int]", part.get("retired") or [])
    return load_row(FactChangePart, {"made": None, "reason": "", **part, "retired": tuple(retired)})
