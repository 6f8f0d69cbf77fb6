"""Exports and imports of a memory: paged exports, imports staged and then applied at once, and facts with history."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    tuple_,
    update,
)

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import FactCategory
from annabelle.store.memory import conversations as turns, text_index
from annabelle.store.memory.conversations import StoredTurn
from annabelle.store.memory.facts import Fact, fact_hash
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import load_row
from annabelle.store.memory.tables import conversations, facts, import_rows, imports
from annabelle.store.portable_sql import InsertNew, RowValues

_PAGE = 500
_INTERNAL_COLUMNS = frozenset({"user_id", "agent_id", "fact_hash", "import_key"})
"""Columns without meaning outside this database."""


@dataclass(frozen=True, slots=True)
class FactsState:
    """The facts that were current at a moment, identified by a digest."""

    digest: str
    ids: list[int]


def use_one_snapshot(connection: Connection) -> None:
    """Makes all queries of a transaction see the same state. On SQLite they always do."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))


def export_rows(connection: Connection, owner: Owner, table: Table) -> Iterator[JsonObject]:
    for row in _read_pages(connection, select(table).where(owner.row_filter(table)), table.c.id):
        yield {key: _to_json_value(value) for key, value in row.items() if key not in _INTERNAL_COLUMNS}


def _read_pages(
    connection: Connection, query: Select[*tuple[object, ...]], *keys: ColumnElement[object]
) -> Iterator[RowMapping]:
    """Yields rows in the order of these columns. Page by page: an abandoned stream would leave a cursor open."""
    page = query
    while True:
        rows = connection.execute(page.order_by(*keys).limit(_PAGE)).mappings().all()
        yield from rows
        if len(rows) < _PAGE:
            return
        last = tuple_(*(literal(rows[-1][key], key.type) for key in keys))
        page = query.where(tuple_(*keys) > last)


def _to_json_value(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def export_current_facts(connection: Connection, owner: Owner, category: FactCategory) -> Iterator[Fact]:
    """Yields the current facts of a category, oldest first."""
    wanted = and_(owner.row_filter(facts), facts.c.category == category, facts.c.retired_at.is_(None))
    for row in _read_pages(connection, select(facts).where(wanted), facts.c.id):
        yield load_row(Fact, row)


def export_turns(connection: Connection, owner: Owner) -> Iterator[StoredTurn]:
    """Yields every turn, in the order they were said."""
    query = select(conversations).where(owner.row_filter(conversations))
    for row in _read_pages(connection, query, conversations.c.said_at, conversations.c.id):
        yield turns.load_turn(row)


def newest_fact_id(connection: Connection, owner: Owner) -> int:
    return connection.execute(select(func.max(facts.c.id)).where(owner.row_filter(facts))).scalar() or 0


def read_facts_state(connection: Connection, owner: Owner, through: int, at: datetime) -> FactsState:
    """Returns which facts up to this id were current at a moment. Repeatable unless one was erased since."""
    then = or_(facts.c.retired_at.is_(None), facts.c.retired_at > at)
    query = select(facts.c.id, facts.c.fact_hash).where(owner.row_filter(facts), facts.c.id <= through, then)
    digest, ids = hashlib.sha256(), list[int]()
    for row in _read_pages(connection, query, facts.c.id):
        digest.update(f"{row['id']}:{row['fact_hash']}\n".encode())
        ids.append(row["id"])
    return FactsState(digest.hexdigest()[:16], ids)


IMPORT_LIFETIME = timedelta(days=7)
"""An unfinished import is dropped after this."""
_insert_import = InsertNew(imports, ("user_id", "agent_id", "digest"))
_insert_staged = InsertNew(import_rows)


@dataclass(frozen=True, slots=True)
class ImportJob:
    id: int
    total: int
    staged: int
    finished: bool


def begin_import(connection: Connection, owner: Owner, digest: str, name: str, total: int) -> ImportJob:
    """Begins or continues the import of a file. A finished one starts again: the memory may have changed."""
    at = now()
    stale = (owner.row_filter(imports), imports.c.finished.is_(False), imports.c.digest != digest)
    connection.execute(delete(imports).where(*stale, imports.c.begun_at < at - IMPORT_LIFETIME))
    new = {"digest": digest, "name": name, "total": total, "begun_at": at, "finished": False}
    _insert_import.insert(connection, {**owner.columns(), **new})
    found = get_import(connection, owner, digest)
    if found.finished:
        connection.execute(update(imports).where(imports.c.id == found.id).values(**new))
        connection.execute(delete(import_rows).where(import_rows.c.import_id == found.id))
        found = get_import(connection, owner, digest)
    return found


def get_import(connection: Connection, owner: Owner, digest: str) -> ImportJob:
    """Returns the progress of an import, locked until the transaction ends."""
    query = select(imports).where(owner.row_filter(imports), imports.c.digest == digest)
    row = connection.execute(query.with_for_update()).mappings().one()
    staged = select(func.count()).select_from(import_rows).where(import_rows.c.import_id == row["id"])
    return ImportJob(row["id"], row["total"], connection.execute(staged).scalar_one(), row["finished"])


def stage_rows(connection: Connection, import_id: int, start: int, rows: Sequence[JsonObject]) -> None:
    """Stages rows under their numbers; keeps those already staged."""
    numbered = [{"import_id": import_id, "number": number, "row": row} for number, row in enumerate(rows, start)]
    _insert_staged.insert_many(connection, numbered)


def read_staged_rows(connection: Connection, import_id: int) -> Iterator[object]:
    query = select(import_rows.c.number, import_rows.c.row).where(import_rows.c.import_id == import_id)
    return (row["row"] for row in _read_pages(connection, query, import_rows.c.number))


def finish_import(connection: Connection, import_id: int) -> None:
    connection.execute(delete(import_rows).where(import_rows.c.import_id == import_id))
    connection.execute(update(imports).where(imports.c.id == import_id).values(finished=True))


def abandon_import(connection: Connection, import_id: int) -> None:
    connection.execute(delete(imports).where(imports.c.id == import_id))


_insert_fact = insert(facts).returning(facts.c.id)
_insert_turn = insert(conversations).returning(conversations.c.id)


@dataclass(frozen=True, slots=True)
class ExistingFact:
    id: int
    created_at: datetime
    current: bool


def find_existing_facts(connection: Connection, owner: Owner, texts: Collection[str]) -> dict[str, list[ExistingFact]]:
    """Finds facts with these texts, current and retired, by the hash of their text."""
    hashes = {fact_hash(text) for text in texts}
    query = select(facts.c.fact_hash, facts.c.id, facts.c.created_at, facts.c.retired_at)
    found: dict[str, list[ExistingFact]] = {}
    for said, number, created_at, retired_at in connection.execute(
        query.where(owner.row_filter(facts), facts.c.fact_hash.in_(hashes)).order_by(facts.c.id)
    ):
        found.setdefault(said, []).append(ExistingFact(number, created_at, retired_at is None))
    return found


def import_fact(connection: Connection, owner: Owner, values: RowValues) -> int:
    """Imports a fact as it was, and indexes it if it is current. Returns its id."""
    said = fact_hash(str(values["fact"]))
    key = hashlib.sha256(f"{said} {values['created_at']}".encode()).hexdigest()[:32]
    row = {**values, **owner.columns(), "fact_hash": said, "import_key": key}
    number = connection.execute(_insert_fact, row).scalar_one()
    if values["retired_at"] is None:
        text_index.index_row(connection, "fact", owner, number, str(values["fact"]), str(values["category"]))
    return number


def link_facts(connection: Connection, owner: Owner, successors: Mapping[int, int]) -> None:
    if successors:
        link = (
            update(facts)
            .where(owner.row_filter(facts), facts.c.id == bindparam("at"))
            .values(superseded_by=bindparam("by"))
        )
        connection.execute(link, [{"at": old, "by": new} for old, new in successors.items()])


def find_existing_turn(connection: Connection, owner: Owner, values: RowValues) -> int | None:
    """Finds the same turn: by message id, or by time, session and words."""
    columns = conversations.c
    if values.get("message_id") is not None:
        query = select(columns.id).where(owner.row_filter(conversations), columns.message_id == values["message_id"])
        return connection.execute(query).scalar()
    same = [columns[name] == values[name] for name in ("said_at", "session_id", "user_message", "agent_response")]
    return connection.execute(select(columns.id).where(owner.row_filter(conversations), *same).limit(1)).scalar()


def import_turn(connection: Connection, owner: Owner, values: RowValues) -> int:
    said = "\n".join(str(values[name]) for name in ("session_id", "said_at", "user_message", "agent_response"))
    row = {"created_at": now(), **values, **owner.columns()}
    row["import_key"] = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:32]
    number = connection.execute(_insert_turn, row).scalar_one()
    turns.index_turn(connection, owner, turns.get_turns(connection, owner, [number])[number])
    return number
