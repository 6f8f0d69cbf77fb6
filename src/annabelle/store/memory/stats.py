"""How much is remembered: counts of one owner's rows, and the size of it all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, Table, func, select, text

from annabelle.core.memory import Trust
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import contacts, conversations, facts, metadata, profiles, project_sources, projects


@dataclass(frozen=True, slots=True)
class FactCount:
    """How many facts of a kind there are."""

    category: str
    trust: Trust
    retired: bool
    count: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The counts of one owner."""

    facts: list[FactCount]
    conversations: int
    contacts: int
    projects: int
    project_sources: int
    profile_version: int
    oldest: datetime | None
    newest: datetime | None


def read(connection: Connection, owner: Owner) -> Stats:
    """Count everything that belongs to this owner."""
    retired = facts.c.retired_at.is_not(None).label("retired")
    kinds = select(facts.c.category, facts.c.trust, retired, func.count()).where(owner.of(facts))
    counted = connection.execute(kinds.group_by(facts.c.category, facts.c.trust, retired).order_by(facts.c.category))
    ends = [
        *connection.execute(_ends(owner, facts, "created_at")).one(),
        *connection.execute(_ends(owner, conversations, "said_at")).one(),
    ]
    moments: list[datetime] = [moment for moment in ends if moment is not None]
    version = connection.execute(select(profiles.c.version).where(owner.of(profiles))).scalar()
    return Stats(
        facts=[FactCount(category, trust, bool(gone), count) for category, trust, gone, count in counted],
        conversations=_count(connection, owner, conversations),
        contacts=_count(connection, owner, contacts),
        projects=_count(connection, owner, projects),
        project_sources=_count(connection, owner, project_sources),
        profile_version=version or 0,
        oldest=min(moments, default=None),
        newest=max(moments, default=None),
    )


def size_bytes(connection: Connection) -> int:
    """What the whole memory takes, of all owners, with its indexes."""
    if connection.dialect.name == "sqlite":
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())
    names = "unnest(CAST(:names AS text[])) AS name"
    sizes = text(f"SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0) FROM {names}")  # noqa: S608
    return int(connection.execute(sizes, {"names": list(metadata.tables)}).scalar_one())


def _ends(owner: Owner, table: Table, column: str) -> Select[datetime | None, datetime | None]:
    return select(func.min(table.c[column]), func.max(table.c[column])).where(owner.of(table))


def _count(connection: Connection, owner: Owner, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table).where(owner.of(table))).scalar_one()
