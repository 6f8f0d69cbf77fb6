"""Takes rows of another memory in, with their history and their own times."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select, update

from annabelle.core.messages import now
from annabelle.store.memory import conversations as turns
from annabelle.store.memory import text_index
from annabelle.store.memory.facts import fact_hash
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import conversations, facts
from annabelle.store.statements import Values

_add_facts = insert(facts)
_add_turn = insert(conversations).returning(conversations.c.id)


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact that is here already."""

    id: int
    created_at: datetime
    current: bool


def known_facts(connection: Connection, owner: Owner, texts: Collection[str]) -> dict[str, list[KnownFact]]:
    """The facts that say these things, current and retired, by the hash of what they say."""
    hashes = {fact_hash(text) for text in texts}
    query = select(facts.c.fact_hash, facts.c.id, facts.c.created_at, facts.c.retired_at)
    found: dict[str, list[KnownFact]] = {}
    for said, number, created_at, retired_at in connection.execute(
        query.where(owner.of(facts), facts.c.fact_hash.in_(hashes)).order_by(facts.c.id)
    ):
        found.setdefault(said, []).append(KnownFact(number, created_at, retired_at is None))
    return found


def add_facts(connection: Connection, owner: Owner, facts_of_file: Sequence[Values]) -> list[int]:
    """Take facts in as they were; their numbers. One that is current is found by its words from now on."""
    if not facts_of_file:
        return []
    rows: list[dict[str, object]] = []
    for values in facts_of_file:
        said = fact_hash(str(values["fact"]))
        key = hashlib.sha256(f"{said} {values['created_at']}".encode()).hexdigest()[:32]
        rows.append({**values, **owner.columns(), "fact_hash": said, "import_key": key})
    connection.execute(_add_facts, rows)
    # Asked for afterwards: an insert that tells its numbers in order goes row by row on SQLite.
    keys = [str(row["import_key"]) for row in rows]
    query = select(facts.c.import_key, facts.c.id).where(owner.of(facts), facts.c.import_key.in_(keys))
    by_key: dict[str, int] = {row[0]: row[1] for row in connection.execute(query)}
    numbers = [by_key[key] for key in keys]
    found = zip(numbers, facts_of_file, strict=True)
    current = [(number, values) for number, values in found if values["retired_at"] is None]
    words = [(number, str(values["fact"]), str(values["category"])) for number, values in current]
    text_index.put_many(connection, "fact", owner, words)
    return numbers


def link_facts(connection: Connection, owner: Owner, successors: Mapping[int, int]) -> None:
    """Say which fact took the place of which."""
    if successors:
        link = update(facts).where(owner.of(facts), facts.c.id == bindparam("at")).values(superseded_by=bindparam("by"))
        connection.execute(link, [{"at": old, "by": new} for old, new in successors.items()])


def known_turn(connection: Connection, owner: Owner, values: Values) -> int | None:
    """The turn that is the same: by its message, or by when and in which words it was said."""
    columns = conversations.c
    if values.get("message_id") is not None:
        query = select(columns.id).where(owner.of(conversations), columns.message_id == values["message_id"])
        return connection.execute(query).scalar()
    same = [columns[name] == values[name] for name in ("said_at", "session_id", "user_message", "agent_response")]
    return connection.execute(select(columns.id).where(owner.of(conversations), *same).limit(1)).scalar()


def add_turn(connection: Connection, owner: Owner, values: Values) -> int:
    """Take a turn in as it was said, to be found by its words."""
    said = "\n".join(str(values[name]) for name in ("session_id", "said_at", "user_message", "agent_response"))
    row = {"created_at": now(), **values, **owner.columns()}
    row["import_key"] = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:32]
    number = connection.execute(_add_turn, row).scalar_one()
    turns.index(connection, owner, turns.get(connection, owner, [number])[number])
    return number
