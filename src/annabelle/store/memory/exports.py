"""Everything an owner's memory holds, page by page, as it was at one moment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import ColumnElement, Connection, Table, and_, func, or_, select, text

from annabelle.core.memory import FactCategory
from annabelle.core.tools import JsonObject
from annabelle.store.memory import conversations as turns
from annabelle.store.memory import facts as known
from annabelle.store.memory.conversations import Turn
from annabelle.store.memory.facts import Fact
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import conversations, facts

_PAGE = 500
_OURS = frozenset({"user_id", "agent_id", "fact_hash", "import_key"})
"""Columns that mean nothing outside of this database."""


@dataclass(frozen=True, slots=True)
class State:
    """Which facts were current at a moment: told apart from any other state by its digest."""

    through: int
    digest: str
    ids: list[int]


def hold_still(connection: Connection) -> None:
    """Let a transaction see one moment from its first query to its last. SQLite's do anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))


def rows(connection: Connection, owner: Owner, table: Table) -> Iterator[JsonObject]:
    """Every row of a table, by its id, as JSON."""
    after = 0
    while True:
        query = select(table).where(owner.of(table), table.c.id > after).order_by(table.c.id).limit(_PAGE)
        page = connection.execute(query).mappings().all()
        for row in page:
            after = row["id"]
            yield {key: _plain(value) for key, value in row.items() if key not in _OURS}
        if len(page) < _PAGE:
            return


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def current_facts(connection: Connection, owner: Owner, category: FactCategory) -> Iterator[Fact]:
    """The current facts of a category, oldest first."""
    wanted = and_(owner.of(facts), facts.c.category == category, facts.c.retired_at.is_(None))
    after = 0
    while True:
        query = select(facts.c.id).where(wanted, facts.c.id > after).order_by(facts.c.id).limit(_PAGE)
        ids = list(connection.execute(query).scalars())
        found = known.get(connection, owner, ids)
        yield from (found[number] for number in ids)
        if len(ids) < _PAGE:
            return
        after = ids[-1]


def said(connection: Connection, owner: Owner) -> Iterator[Turn]:
    """Every turn, in the order they were said."""
    after: tuple[datetime, int] | None = None
    while True:
        page = connection.execute(
            select(conversations.c.id, conversations.c.said_at)
            .where(owner.of(conversations), *([_later(*after)] if after else []))
            .order_by(conversations.c.said_at, conversations.c.id)
            .limit(_PAGE)
        ).all()
        found = turns.get(connection, owner, [row[0] for row in page])
        yield from (found[row[0]] for row in page)
        if len(page) < _PAGE:
            return
        after = (page[-1][1], page[-1][0])


def _later(at: datetime, row_id: int) -> ColumnElement[bool]:
    moment, number = conversations.c.said_at, conversations.c.id
    return or_(moment > at, and_(moment == at, number > row_id))


def newest_fact(connection: Connection, owner: Owner) -> int:
    """The highest number a fact of this owner has."""
    return connection.execute(select(func.max(facts.c.id)).where(owner.of(facts))).scalar() or 0


def state(connection: Connection, owner: Owner, through: int, at: datetime) -> State:
    """Which facts up to this number were current at a moment. The same again unless one of them was destroyed since."""
    then = or_(facts.c.retired_at.is_(None), facts.c.retired_at > at)
    query = select(facts.c.id, facts.c.fact_hash).where(owner.of(facts), facts.c.id <= through, then)
    digest, ids = hashlib.sha256(), list[int]()
    for row in connection.execute(query.order_by(facts.c.id).execution_options(yield_per=1000)):
        digest.update(f"{row[0]}:{row[1]}\n".encode())
        ids.append(cast("int", row[0]))
    return State(through, digest.hexdigest()[:16], ids)
