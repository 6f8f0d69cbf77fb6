"""Removes a text from the memory: rows about it are deleted, mentions are masked (TRU-09)."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import cast

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from annabelle.core.errors import NotFound
from annabelle.core.secrets.forget_mask import prune_value
from annabelle.core.tools import JsonObject
from annabelle.store.memory import conversations as turns, text_index, vectors
from annabelle.store.memory.owner import Owner, SearchKind
from annabelle.store.memory.tables import (
    contacts,
    conversations,
    facts,
    import_rows,
    imports,
    metadata,
    profile_history,
    profiles,
    projects,
)
from annabelle.store.text_removal import FoundRow, TextColumns, TextRemoval

_LEAST_CHARACTERS = 12
_NAMES = ("about", "session_id")
_KINDS: tuple[SearchKind, ...] = ("fact", "conversation")
# A row with the text in these columns is deleted; in other columns only the text is masked.
_REMOVED_WHOLE: dict[Table, tuple[str, ...]] = {
    facts: ("fact",),
    conversations: ("user_message", "agent_response"),
    contacts: ("name", "email"),
    projects: ("name",),
}


@dataclass(frozen=True, slots=True)
class RemovedFactRow:
    id: int
    agent_id: str
    fact: str
    current: bool


@dataclass(frozen=True, slots=True)
class RemovedFromMemory:
    """What contained the text: the facts, and the number of rows of every kind."""

    facts: list[RemovedFactRow]
    counts: dict[str, int]


def remove_text(connection: Connection, sweep: TextRemoval) -> RemovedFromMemory:
    """Searches all memories of one person's agents; with `apply`, removes the text."""
    counts: dict[str, int] = {}
    known = _matching_facts(connection, sweep)
    for table, columns in _REMOVED_WHOLE.items():
        cells = TextColumns(table.name, ("id",), columns)
        ids = [cast("int", row["id"]) for row in sweep.as_dry_run().run(connection, cells, sweep.owner_filter(table))]
        counts[table.name] = len(ids)
        if sweep.apply:
            _remove_rows(connection, table, ids)
    counts["imports"] = _remove_unfinished_imports(connection, sweep)
    for table in (profiles, profile_history):
        counts[table.name] = _prune_profiles(connection, sweep, table)
    for table in metadata.sorted_tables:
        if table is not import_rows:
            counts[table.name] = counts.get(table.name, 0) + len(_mask_table(connection, sweep, table))
    if sweep.apply and connection.dialect.name == "sqlite":
        for kind in _KINDS:
            # Otherwise index segments would keep words that no row has any more.
            connection.exec_driver_sql(f"INSERT INTO {kind}_text ({kind}_text) VALUES ('rebuild')")  # noqa: S608
    return RemovedFromMemory(known, {name: count for name, count in counts.items() if count})


def list_fact_texts(connection: Connection, user_id: str, fact_id: int, *, with_source: bool = False) -> list[str]:
    """Returns the texts of a fact and those it replaced, and with `with_source` of their conversations."""
    found: list[FoundRow] = []
    wanted = [fact_id]
    while wanted:
        chosen = facts.c.superseded_by.in_(wanted) if found else facts.c.id.in_(wanted)
        query = sa.select(facts.c.id, facts.c.fact, facts.c.origin).where(facts.c.user_id == user_id, chosen)
        rows = [{str(key): value for key, value in row.items()} for row in connection.execute(query).mappings()]
        known = {row["id"] for row in found}
        found += [row for row in rows if row["id"] not in known]
        wanted = [cast("int", row["id"]) for row in rows if row["id"] not in known]
    if not found:
        raise NotFound(f"There is no fact {fact_id}.", field="fact_id")
    texts = [str(row["fact"]) for row in found]
    if with_source:
        texts += _source_texts(connection, user_id, [cast("JsonObject", row["origin"]) for row in found])
    return list(dict.fromkeys(texts))


def _source_texts(connection: Connection, user_id: str, origins: list[JsonObject]) -> list[str]:
    """Returns what was said where facts came from. Skips short texts such as "yes", which match everywhere."""
    numbers = [origin["conversation_id"] for origin in origins if isinstance(origin.get("conversation_id"), int)]
    messages = [origin["message_id"] for origin in origins if isinstance(origin.get("message_id"), str)]
    from_there = sa.or_(conversations.c.id.in_(numbers), conversations.c.message_id.in_(messages))
    query = sa.select(conversations.c.user_message, conversations.c.agent_response)
    rows = connection.execute(query.where(conversations.c.user_id == user_id, from_there))
    quotes = [str(origin["quote"]) for origin in origins if origin.get("quote")]
    return [text for text in (*(str(text) for row in rows for text in row), *quotes) if len(text) >= _LEAST_CHARACTERS]


def list_tables(connection: Connection) -> list[str]:
    """Lists every table of the memory, quoted for PostgreSQL's VACUUM."""
    inspector = sa.inspect(connection)
    return [f'"{name}"' for name in [*metadata.tables, "text_index"] if inspector.has_table(name)]


def _matching_facts(connection: Connection, sweep: TextRemoval) -> list[RemovedFactRow]:
    cells = TextColumns("facts", ("id",), ("fact",), returned=("agent_id", "retired_at"))
    return [
        RemovedFactRow(cast("int", row["id"]), str(row["agent_id"]), str(row["fact"]), row["retired_at"] is None)
        for row in sweep.as_dry_run().run(connection, cells, sweep.owner_filter(facts))
    ]


def _remove_rows(connection: Connection, table: Table, ids: list[int]) -> None:
    kind: SearchKind | None = "fact" if table is facts else "conversation" if table is conversations else None
    if kind is not None:
        text_index.remove_rows(connection, kind, ids)
        vectors.remove_vectors(connection, kind, ids)
    for row_id in ids:
        connection.execute(sa.delete(table).where(table.c.id == row_id))


def _remove_unfinished_imports(connection: Connection, sweep: TextRemoval) -> int:
    """Deletes unfinished imports with the text as a whole: a partial file is never shown."""
    import_id: sa.ColumnClause[int] = sa.column("import_id")
    mine = import_id.in_(sa.select(imports.c.id).where(sweep.owner_filter(imports)))
    cells = TextColumns("import_rows", ("import_id", "number"), json=("row",))
    found = {cast("int", row["import_id"]) for row in sweep.as_dry_run().run(connection, cells, mine)}
    for number in found if sweep.apply else ():
        connection.execute(sa.delete(imports).where(imports.c.id == number))
    return len(found)


def _prune_profiles(connection: Connection, sweep: TextRemoval, table: Table) -> int:
    """Removes entries with the text from profiles. Every version can still be restored."""
    keys = tuple(column.name for column in table.primary_key)
    cells = TextColumns(table.name, keys, json=("profile",))
    found = sweep.as_dry_run().run(connection, cells, sweep.owner_filter(table))
    for row in found if sweep.apply else []:
        left = json.dumps(prune_value(sweep.matcher, json.loads(str(row["profile"]))) or {}, separators=(",", ":"))
        shadow = cells.plain_table()
        connection.execute(sa.update(shadow).where(_same_row(shadow, keys, row)).values(profile=left))
    return len(found)


def _same_row(table: sa.TableClause, keys: tuple[str, ...], row: FoundRow) -> sa.ColumnElement[bool]:
    return sa.and_(*(table.c[key] == row[key] for key in keys))


def _mask_table(connection: Connection, sweep: TextRemoval, table: Table) -> list[FoundRow]:
    """Masks the text in the remaining columns, and indexes changed conversations again."""
    cells = TextColumns.from_table(table, ("user_id", "agent_id") if "agent_id" in table.c else ())
    cells = replace(cells, names=tuple(name for name in _NAMES if name in table.c))
    if not sweep.apply:
        # Already counted.
        words = tuple(name for name in cells.words if name not in _REMOVED_WHOLE.get(table, ()))
        cells = replace(cells, words=words, json=tuple(name for name in cells.json if name != "profile"))
    found = sweep.run(connection, cells, sweep.owner_filter(table))
    for row in found if sweep.apply and table is conversations else []:
        owner, row_id = Owner(str(row["user_id"]), str(row["agent_id"])), cast("int", row["id"])
        for turn in turns.get_turns(connection, owner, [row_id]).values():
            turns.index_turn(connection, owner, turn)
    return found
