"""Facts about people, with their origin. A fact that is replaced or deleted is retired, not lost."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, bindparam, insert, select, text, update

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import FactCategory, Trust
from annabelle.store.memory import text_index, vectors
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import load_row, read_by_id, row_parameters, rows_by_id
from annabelle.store.memory.tables import facts

RetirementReason = Literal["superseded", "merged", "deleted"]

_columns = facts.c
_owned = (_columns.user_id == bindparam("user_id"), _columns.agent_id == bindparam("agent_id"))
_insert = insert(facts).returning(facts)
_same = (
    select(facts)
    .where(*_owned, _columns.fact_hash == bindparam("fact_hash"), _columns.retired_at.is_(None))
    .order_by(_columns.id)
    .limit(1)
)
_get = select(facts).where(rows_by_id(facts))
_wordings = select(_columns.id, _columns.fact, _columns.category).where(
    rows_by_id(facts), _columns.retired_at.is_(None)
)
_touch = update(facts).where(rows_by_id(facts)).values(last_accessed_at=bindparam("seen_at"))
_about = (
    select(facts)
    .where(*_owned, _columns.about == bindparam("about"), _columns.retired_at.is_(None))
    .order_by(_columns.id)
    .limit(50)
)
_lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:owner, 20))")


@dataclass(frozen=True, slots=True)
class FactVector:
    model: str
    dimension: int
    data: bytes


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact before it has an id."""

    fact: str
    category: FactCategory
    source: str = ""
    confidence: float = 1.0
    trust: Trust = "trusted"
    origin: JsonObject = field(default_factory=dict[str, object])
    valid_from: datetime | None = None
    about: str | None = None
    vector: FactVector | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A stored fact. `valid_*` is when it was true in the world, the other times are when we knew it."""

    id: int
    fact: str
    about: str | None
    category: FactCategory
    source: str
    confidence: float
    trust: Trust
    origin: JsonObject
    valid_from: datetime
    valid_until: datetime | None
    created_at: datetime
    updated_at: datetime
    retired_at: datetime | None
    retired_because: RetirementReason | None
    superseded_by: int | None
    last_accessed_at: datetime | None

    @property
    def current(self) -> bool:
        return self.retired_at is None


def fact_hash(fact: str) -> str:
    """Hashes a text, ignoring case, spaces, Unicode form and final punctuation."""
    plain = " ".join(unicodedata.normalize("NFKC", fact).casefold().split()).rstrip(" .!。")
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:32]


def lock_facts(connection: Connection, owner: Owner) -> None:
    """Lets one writer at a time change an owner's facts. SQLite has a single writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_lock, {"owner": f"{owner.user_id}\n{owner.agent_id}"})


def add_fact(connection: Connection, owner: Owner, new: NewFact) -> Fact:
    """Stores a new fact and indexes it by words and, with a vector, by meaning."""
    at = now()
    values = {name: value for name, value in asdict(new).items() if name != "vector"}
    values |= {**owner.columns(), "fact_hash": fact_hash(new.fact), "valid_from": new.valid_from or at}
    values |= {"created_at": at, "updated_at": at}
    fact = load_row(Fact, connection.execute(_insert, values).mappings().one())
    _index_fact(connection, owner, fact, new.vector)
    return fact


def get_facts(connection: Connection, owner: Owner, ids: Iterable[int]) -> dict[int, Fact]:
    """Returns facts by id, including retired ones, leaving out those of other owners."""
    return {row["id"]: load_row(Fact, row) for row in read_by_id(connection, _get, owner, ids)}


def get_wordings(connection: Connection, owner: Owner, ids: Collection[int]) -> dict[int, tuple[str, FactCategory]]:
    """Returns text and category of current facts, for comparing them."""
    if not ids:
        return {}
    rows = connection.execute(_wordings, row_parameters(owner, ids)).fetchall()
    return {number: (fact, category) for number, fact, category in rows}


def find_same_fact(connection: Connection, owner: Owner, fact: str) -> Fact | None:
    row = connection.execute(_same, {**owner.columns(), "fact_hash": fact_hash(fact)}).mappings().first()
    return None if row is None else load_row(Fact, row)


def list_current_about(connection: Connection, owner: Owner, about: str) -> list[Fact]:
    """Lists the current facts of one relation, which a new value may replace."""
    return [load_row(Fact, row) for row in connection.execute(_about, {**owner.columns(), "about": about}).mappings()]


def list_facts(
    connection: Connection,
    owner: Owner,
    *,
    category: FactCategory | None = None,
    include_retired: bool = False,
    before_id: int | None = None,
    limit: int = 50,
) -> list[Fact]:
    """Lists facts, newest first; for the next page pass the last id as `before_id`."""
    query = select(facts).where(owner.row_filter(facts))
    if category is not None:
        query = query.where(_columns.category == category)
    if not include_retired:
        query = query.where(_columns.retired_at.is_(None))
    if before_id is not None:
        query = query.where(_columns.id < before_id)
    return [
        load_row(Fact, row) for row in connection.execute(query.order_by(_columns.id.desc()).limit(limit)).mappings()
    ]


def list_replaced_by(connection: Connection, owner: Owner, fact_id: int) -> list[Fact]:
    """Lists the facts that this one replaced, oldest first."""
    query = select(facts).where(owner.row_filter(facts), _columns.superseded_by == fact_id).order_by(_columns.id)
    return [load_row(Fact, row) for row in connection.execute(query).mappings()]


def refresh_fact(connection: Connection, owner: Owner, known: Fact, again: NewFact) -> Fact:
    """Records that a fact was repeated. A trusted repetition makes it trusted; an untrusted one never lowers it."""
    values: dict[str, object] = {"updated_at": now(), "confidence": max(known.confidence, again.confidence)}
    if known.trust == "untrusted" and again.trust == "trusted":
        values |= {"trust": "trusted", "source": again.source, "origin": {**again.origin, "before": known.origin}}
    query = update(facts).where(owner.row_filter(facts), _columns.id == known.id).values(values).returning(facts)
    return load_row(Fact, connection.execute(query).mappings().one())


def retire_facts(
    connection: Connection,
    owner: Owner,
    ids: Sequence[int],
    because: RetirementReason,
    *,
    by: int | None = None,
    valid_until: datetime | None = None,
    origin: JsonObject | None = None,
) -> list[int]:
    """Retires facts: they stay in the history, but search no longer finds them. Returns those that were current."""
    gone: list[int] = []
    for fact in get_facts(connection, owner, ids).values():
        if not fact.current:
            continue
        until = None if valid_until is None else max(valid_until, fact.valid_from)
        kept = fact.origin if origin is None else {**fact.origin, "retired": origin}
        query = update(facts).where(owner.row_filter(facts), _columns.id == fact.id)
        connection.execute(
            query.values(retired_at=now(), retired_because=because, superseded_by=by, valid_until=until, origin=kept)
        )
        gone.append(fact.id)
    text_index.remove_rows(connection, "fact", gone)
    vectors.remove_vectors(connection, "fact", gone)
    return gone


def restore_facts(
    connection: Connection, owner: Owner, ids: Sequence[int], embedded: Mapping[int, FactVector | None] | None = None
) -> list[Fact]:
    """Makes retired facts current again; skips those that already are."""
    back: list[Fact] = []
    for old in get_facts(connection, owner, ids).values():
        if old.current:
            continue
        origin = {key: value for key, value in old.origin.items() if key != "retired"}
        query = (
            update(facts)
            .where(owner.row_filter(facts), _columns.id == old.id)
            .values(retired_at=None, retired_because=None, superseded_by=None, valid_until=None, origin=origin)
            .returning(facts)
        )
        fact = load_row(Fact, connection.execute(query).mappings().one())
        _index_fact(connection, owner, fact, (embedded or {}).get(fact.id))
        back.append(fact)
    return back


def touch_facts(connection: Connection, owner: Owner, ids: Sequence[int]) -> None:
    if ids:
        connection.execute(_touch, {**row_parameters(owner, ids), "seen_at": now()})


def _index_fact(connection: Connection, owner: Owner, fact: Fact, vector: FactVector | None) -> None:
    text_index.index_row(connection, "fact", owner, fact.id, fact.fact, fact.category)
    if vector is not None:
        vectors.store_vector(connection, "fact", owner, fact.id, vector.model, vector.data, vector.dimension)
