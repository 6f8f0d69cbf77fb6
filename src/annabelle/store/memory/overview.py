"""Statistics of an owner's memory, and the timeline of its events."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal, get_args

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    and_,
    case,
    func,
    null,
    or_,
    select,
    text,
)

from annabelle.core.trust import Trust
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import contains_text, may_contain_text
from annabelle.store.memory.tables import (
    contacts,
    conversations,
    facts,
    metadata,
    profile_history,
    profiles,
    project_sources,
    projects,
)


@dataclass(frozen=True, slots=True)
class FactCount:
    category: str
    trust: Trust
    retired: bool
    count: int


@dataclass(frozen=True, slots=True)
class OwnerStats:
    facts: list[FactCount]
    conversations: int
    contacts: int
    projects: int
    project_sources: int
    profile_version: int
    oldest: datetime | None
    newest: datetime | None


def read_stats(connection: Connection, owner: Owner) -> OwnerStats:
    retired = facts.c.retired_at.is_not(None).label("retired")
    kinds = select(facts.c.category, facts.c.trust, retired, func.count()).where(owner.row_filter(facts))
    counted = connection.execute(kinds.group_by(facts.c.category, facts.c.trust, retired).order_by(facts.c.category))
    ends = [
        *connection.execute(_select_ends(owner, facts, "created_at")).one(),
        *connection.execute(_select_ends(owner, conversations, "said_at")).one(),
    ]
    moments: list[datetime] = [moment for moment in ends if moment is not None]
    version = connection.execute(select(profiles.c.version).where(owner.row_filter(profiles))).scalar()
    return OwnerStats(
        facts=[FactCount(category, trust, bool(gone), count) for category, trust, gone, count in counted],
        conversations=_count_rows(connection, owner, conversations),
        contacts=_count_rows(connection, owner, contacts),
        projects=_count_rows(connection, owner, projects),
        project_sources=_count_rows(connection, owner, project_sources),
        profile_version=version or 0,
        oldest=min(moments, default=None),
        newest=max(moments, default=None),
    )


def database_size(connection: Connection) -> int:
    """Bytes used by the memory of all owners, with its indexes."""
    if connection.dialect.name == "sqlite":
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())
    names = "unnest(CAST(:names AS text[])) AS name"
    sizes = text(f"SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0) FROM {names}")  # noqa: S608
    return int(connection.execute(sizes, {"names": list(metadata.tables)}).scalar_one())


def _select_ends(owner: Owner, table: Table, column: str) -> Select[datetime | None, datetime | None]:
    return select(func.min(table.c[column]), func.max(table.c[column])).where(owner.row_filter(table))


def _count_rows(connection: Connection, owner: Owner, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table).where(owner.row_filter(table))).scalar_one()


TimelineCategory = Literal["facts", "conversations", "profile_changes", "contacts", "projects"]
TIMELINE_CATEGORIES: tuple[TimelineCategory, ...] = get_args(TimelineCategory)

_PAGE = 200


@dataclass(frozen=True, slots=True, order=True)
class TimelinePosition:
    """A position in the timeline, to continue after."""

    at: datetime
    lane: int
    id: int


@dataclass(frozen=True, slots=True)
class MemoryTimelineEvent:
    """One event. `after` is a corrected fact's new text, or the answer to what was said."""

    position: TimelinePosition
    category: TimelineCategory
    what: str
    text: str
    after: str | None
    trust: Trust


@dataclass(frozen=True, slots=True)
class TimelineQuery:
    """Part of the timeline: from `since`, up to but without `until`."""

    since: datetime
    until: datetime | None = None
    categories: Sequence[TimelineCategory] = TIMELINE_CATEGORIES
    query: str | None = None


@dataclass(frozen=True, slots=True)
class _TimelineSource:
    number: int
    category: TimelineCategory
    table: Table
    at: Column[datetime]
    text: Column[str]
    what: str | Column[str]
    after: ColumnElement[str] | None = None
    source: FromClause | None = None
    trust: ColumnElement[str] | None = None
    """Set if the event includes text from other rows."""


_successor = facts.alias("successor")
_succeeded = and_(
    facts.c.superseded_by == _successor.c.id,
    facts.c.user_id == _successor.c.user_id,
    facts.c.agent_id == _successor.c.agent_id,
)

_said, _person, _work, _past = conversations.c, contacts.c, projects.c, profile_history.c
_SOURCES = (
    _TimelineSource(0, "facts", facts, facts.c.created_at, facts.c.fact, "learnt"),
    _TimelineSource(
        1,
        "facts",
        facts,
        facts.c.retired_at,
        facts.c.fact,
        facts.c.retired_because,
        after=_successor.c.fact,
        source=facts.outerjoin(_successor, _succeeded),
        trust=case((_successor.c.trust == "untrusted", "untrusted"), else_=facts.c.trust),
    ),
    _TimelineSource(
        2, "conversations", conversations, _said.said_at, _said.user_message, "said", after=_said.agent_response
    ),
    _TimelineSource(3, "profile_changes", profile_history, _past.changed_at, _past.reason, "changed"),
    _TimelineSource(4, "contacts", contacts, _person.created_at, _person.name, "added", after=_person.email),
    _TimelineSource(5, "contacts", contacts, _person.updated_at, _person.name, "changed", after=_person.email),
    _TimelineSource(6, "projects", projects, _work.created_at, _work.name, "added", after=_work.description),
    _TimelineSource(7, "projects", projects, _work.updated_at, _work.name, "changed", after=_work.description),
)


def read_timeline(
    connection: Connection, owner: Owner, span: TimelineQuery, limit: int, after: TimelinePosition | None = None
) -> list[MemoryTimelineEvent]:
    """Lists the events of a span, oldest first; `after` continues an earlier result."""
    wanted = [
        _iterate_events(connection, owner, lane, span, after) for lane in _SOURCES if lane.category in span.categories
    ]
    return list(islice(heapq.merge(*wanted, key=lambda event: event.position), limit))


def _iterate_events(
    connection: Connection, owner: Owner, lane: _TimelineSource, span: TimelineQuery, after: TimelinePosition | None
) -> Iterator[MemoryTimelineEvent]:
    while True:
        rows = connection.execute(_select_page(owner, lane, span, after)).all()
        for at, row_id, what_text, following, trust, what in rows:
            after = TimelinePosition(at, lane.number, row_id)
            if contains_text(f"{what_text}\n{following or ''}", span.query):
                yield MemoryTimelineEvent(after, lane.category, what or str(lane.what), what_text, following, trust)
        if len(rows) < _PAGE:
            return


def _select_page(owner: Owner, lane: _TimelineSource, span: TimelineQuery, after: TimelinePosition | None):
    row_id = lane.table.c.id
    query = select(
        lane.at,
        row_id,
        lane.text,
        null() if lane.after is None else lane.after,
        lane.table.c.trust if lane.trust is None else lane.trust,
        null() if isinstance(lane.what, str) else lane.what,
    ).where(owner.row_filter(lane.table), lane.at >= span.since)
    query = query.select_from(lane.source if lane.source is not None else lane.table)
    if span.until is not None:
        query = query.where(lane.at < span.until)
    if lane.at.name == "updated_at":  # a row that was never changed was only added
        query = query.where(lane.at > lane.table.c.created_at)
    if after is not None:
        query = query.where(_after_position(lane, after))
    if span.query is not None:
        columns = [lane.text] if lane.after is None else [lane.text, lane.after]
        likely = [found for column in columns if (found := may_contain_text(column, span.query)) is not None]
        query = query.where(or_(*likely)) if likely else query
    return query.order_by(lane.at, row_id).limit(_PAGE)


def _after_position(lane: _TimelineSource, after: TimelinePosition) -> ColumnElement[bool]:
    if lane.number == after.lane:
        return or_(lane.at > after.at, and_(lane.at == after.at, lane.table.c.id > after.id))
    return lane.at >= after.at if lane.number > after.lane else lane.at > after.at
