"""The timeline: everything an owner's memory went through, in the order it happened."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal

from sqlalchemy import Column, ColumnElement, Connection, FromClause, Table, and_, case, null, or_, select

from annabelle.core.memory import Trust
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.substrings import contains, may_contain
from annabelle.store.memory.tables import contacts, conversations, facts, profile_history, projects

Category = Literal["facts", "conversations", "profile_changes", "contacts", "projects"]
CATEGORIES: tuple[Category, ...] = ("facts", "conversations", "profile_changes", "contacts", "projects")

_PAGE = 200


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A place in the timeline, to go on after."""

    at: datetime
    lane: int
    id: int


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `after` is what a fact was corrected to, or what was answered."""

    spot: Spot
    category: Category
    what: str
    text: str
    after: str | None
    trust: Trust


@dataclass(frozen=True, slots=True)
class Span:
    """What part of the timeline is wanted: from `since` on, before `until`."""

    since: datetime
    until: datetime | None = None
    categories: Sequence[Category] = CATEGORIES
    query: str | None = None


@dataclass(frozen=True, slots=True)
class _Lane:
    """One kind of event, and the columns it is read from."""

    number: int
    category: Category
    table: Table
    at: Column[datetime]
    text: Column[str]
    what: str | Column[str]
    after: ColumnElement[str] | None = None
    rows: ColumnElement[bool] | None = None
    source: FromClause | None = None
    trust: ColumnElement[str] | None = None
    """Where the event holds more than the row's own words."""


_successor = facts.alias("successor")
_succeeded = and_(
    facts.c.superseded_by == _successor.c.id,
    facts.c.user_id == _successor.c.user_id,
    facts.c.agent_id == _successor.c.agent_id,
)

_LANES = (
    _Lane(0, "facts", facts, facts.c.created_at, facts.c.fact, "learnt"),
    _Lane(
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
    _Lane(
        2,
        "conversations",
        conversations,
        conversations.c.said_at,
        conversations.c.user_message,
        "said",
        after=conversations.c.agent_response,
    ),
    _Lane(3, "profile_changes", profile_history, profile_history.c.changed_at, profile_history.c.reason, "changed"),
    _Lane(4, "contacts", contacts, contacts.c.created_at, contacts.c.name, "added", after=contacts.c.email),
    _Lane(
        5,
        "contacts",
        contacts,
        contacts.c.updated_at,
        contacts.c.name,
        "changed",
        after=contacts.c.email,
        rows=contacts.c.updated_at > contacts.c.created_at,
    ),
    _Lane(6, "projects", projects, projects.c.created_at, projects.c.name, "added", after=projects.c.description),
    _Lane(
        7,
        "projects",
        projects,
        projects.c.updated_at,
        projects.c.name,
        "changed",
        after=projects.c.description,
        rows=projects.c.updated_at > projects.c.created_at,
    ),
)


def read(connection: Connection, owner: Owner, span: Span, limit: int, after: Spot | None = None) -> list[Event]:
    """The events of a span, oldest first; `after` goes on where an earlier answer ended."""
    wanted = [_walk(connection, owner, lane, span, after) for lane in _LANES if lane.category in span.categories]
    return list(islice(heapq.merge(*wanted, key=lambda event: event.spot), limit))


def _walk(connection: Connection, owner: Owner, lane: _Lane, span: Span, after: Spot | None) -> Iterator[Event]:
    while True:
        rows = connection.execute(_page(owner, lane, span, after)).all()
        for at, row_id, text, following, trust, what in rows:
            after = Spot(at, lane.number, row_id)
            if contains(f"{text}\n{following or ''}", span.query):
                yield Event(after, lane.category, what or str(lane.what), text, following, trust)
        if len(rows) < _PAGE:
            return


def _page(owner: Owner, lane: _Lane, span: Span, after: Spot | None):
    row_id = lane.table.c.id
    query = select(
        lane.at,
        row_id,
        lane.text,
        null() if lane.after is None else lane.after,
        lane.table.c.trust if lane.trust is None else lane.trust,
        null() if isinstance(lane.what, str) else lane.what,
    ).where(owner.of(lane.table), lane.at >= span.since)
    query = query.select_from(lane.source if lane.source is not None else lane.table)
    if span.until is not None:
        query = query.where(lane.at < span.until)
    if lane.rows is not None:
        query = query.where(lane.rows)
    if after is not None:
        query = query.where(_beyond(lane, after))
    if span.query is not None:
        columns = [lane.text] if lane.after is None else [lane.text, lane.after]
        likely = [found for column in columns if (found := may_contain(column, span.query)) is not None]
        query = query.where(or_(*likely)) if likely else query
    return query.order_by(lane.at, row_id).limit(_PAGE)


def _beyond(lane: _Lane, after: Spot) -> ColumnElement[bool]:
    if lane.number == after.lane:
        return or_(lane.at > after.at, and_(lane.at == after.at, lane.table.c.id > after.id))
    return lane.at >= after.at if lane.number > after.lane else lane.at > after.at
