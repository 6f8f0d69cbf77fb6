"""Threads and the numbered events of their turns (THR-04).

One thread per channel, chat, person and agent is open. Those that were ended before it are only read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, func, select, update

from annabelle.core.ids import new_id
from annabelle.core.messages import GOALS, StoredEvent, TurnEvent, now
from annabelle.store.portable_sql import InsertNew, read_all, read_first, require_found
from annabelle.store.tables import events, goals, messages, skills, threads

_insert_thread = InsertNew(threads)
_select_thread = select(threads).where(
    threads.c.channel == bindparam("channel"),
    threads.c.chat_id == bindparam("chat_id"),
    threads.c.user_id == bindparam("user_id"),
    threads.c.agent_id == bindparam("agent_id"),
    threads.c.ended_at.is_(None),
)
_select_by_id = select(threads).where(threads.c.id == bindparam("thread_id"))
_TITLE_LENGTH = 120
_is_goals = (threads.c.channel == GOALS) & (goals.c.id == threads.c.chat_id) & (goals.c.user_id == threads.c.user_id)
_goal_title = select(goals.c.title).where(_is_goals).scalar_subquery()
_first_words = (
    select(func.substr(messages.c.content, 1, _TITLE_LENGTH))
    .where(messages.c.thread_id == threads.c.id, messages.c.source == "user")
    .order_by(messages.c.position)
    .limit(1)
    .scalar_subquery()
)
_titled = select(threads, func.coalesce(_goal_title, _first_words).label("title"))
_select_own = (
    _titled.where(threads.c.user_id == bindparam("user_id"), ~threads.c.internal)
    .order_by(threads.c.updated_at.desc(), threads.c.id.desc())
    .limit(bindparam("limit"))
)
_end_thread = (
    update(threads)
    .where(threads.c.id == bindparam("thread"), threads.c.ended_at.is_(None))
    .values(ended_at=bindparam("at"))
)
_update_thread = update(threads).where(threads.c.id == bindparam("thread")).values(updated_at=bindparam("at"))


@dataclass(frozen=True, slots=True)
class Thread:
    id: str
    channel: str
    chat_id: str
    user_id: str
    agent_id: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    internal: bool = False
    title: str | None = None  # only of what a person asked for


def find_or_create_thread(
    connection: Connection, *, channel: str, chat_id: str, user_id: str, agent_id: str, internal: bool = False
) -> Thread:
    """The open thread of a chat. An internal one is of work that nobody talks to, and not listed."""
    key: dict[str, object] = {"channel": channel, "chat_id": chat_id, "user_id": user_id, "agent_id": agent_id}
    if known := find_open_thread(connection, channel=channel, chat_id=chat_id, user_id=user_id, agent_id=agent_id):
        return known
    at = now()
    _insert_thread.insert(
        connection, {"id": new_id("thr"), "created_at": at, "updated_at": at, "internal": internal, **key}
    )
    return read_all(connection, Thread, _select_thread, key)[0]


def find_open_thread(
    connection: Connection, *, channel: str, chat_id: str, user_id: str, agent_id: str
) -> Thread | None:
    key: dict[str, object] = {"channel": channel, "chat_id": chat_id, "user_id": user_id, "agent_id": agent_id}
    return read_first(connection, Thread, _select_thread, key)


def replace_thread(connection: Connection, thread_id: str) -> Thread:
    """Ends a thread and opens another one in its chat, which skills and goals report to from now on."""
    old = load_thread(connection, thread_id)
    connection.execute(_end_thread, {"thread": old.id, "at": now()})
    new = find_or_create_thread(
        connection, channel=old.channel, chat_id=old.chat_id, user_id=old.user_id, agent_id=old.agent_id
    )
    for table in (skills, goals):
        connection.execute(update(table).where(table.c.thread_id == old.id).values(thread_id=new.id))
    return new


def get_thread(connection: Connection, thread_id: str, user_id: str) -> Thread:
    """Returns a thread of this person; NotFound for anyone else's."""
    own = _titled.where(threads.c.id == thread_id, threads.c.user_id == user_id)
    return require_found(read_first(connection, Thread, own), f"thread {thread_id}")


def load_thread(connection: Connection, thread_id: str) -> Thread:
    """Loads a thread of any person, for internal use; never to answer a person's request."""
    return require_found(find_thread(connection, thread_id), f"thread {thread_id}")


def find_thread(connection: Connection, thread_id: str) -> Thread | None:
    """As `load_thread`; None if there is none."""
    return read_first(connection, Thread, _select_by_id, {"thread_id": thread_id})


def list_threads(connection: Connection, user_id: str, limit: int = 50) -> list[Thread]:
    """Lists a person's threads, last used first, without internal ones."""
    return read_all(connection, Thread, _select_own, {"user_id": user_id, "limit": limit})


def count_used_since(connection: Connection, moment: datetime) -> int:
    """How many conversations of anybody were used since then, without internal ones."""
    used = select(func.count()).where(threads.c.updated_at >= moment, ~threads.c.internal)
    return int(connection.execute(used).scalar_one())


def touch_thread(connection: Connection, thread_id: str, at: datetime) -> None:
    """Updates the thread's time; on PostgreSQL this also serializes the writers of one thread."""
    connection.execute(_update_thread, {"thread": thread_id, "at": at})


_insert_event = InsertNew(events, ["message_id", "key"], whole_rows=True)
_select_owner = select(threads.c.user_id).where(threads.c.id == bindparam("thread_id"))
_lock_writers = select(func.pg_advisory_xact_lock(func.hashtext(bindparam("user_id"))))
_select_after = (
    select(events)
    .where(events.c.user_id == bindparam("user_id"), events.c.seq > bindparam("seq"))
    .order_by(events.c.seq)
    .limit(bindparam("limit"))
)
_select_after_in_thread = _select_after.where(events.c.thread_id == bindparam("thread_id"))
_select_said = _select_after.where(
    events.c.type.in_(("message", "approval", "error")), events.c.at >= bindparam("since")
)
_select_of_tools = (
    select(events)
    .where(events.c.user_id == bindparam("user_id"), events.c.message_id.in_(bindparam("ids", expanding=True)))
    .where(events.c.type.in_(("tool_start", "tool_complete", "notice")))
    .order_by(events.c.seq)
)
_IDS_AT_ONCE = 500
_select_of_message = (
    select(events)
    .where(events.c.message_id == bindparam("message_id"), events.c.user_id == bindparam("user_id"))
    .order_by(events.c.seq)
)


def append_events(connection: Connection, thread_id: str, new: Sequence[TurnEvent]) -> list[StoredEvent]:
    """Stores events in order and returns the new ones; skips a key its message already has."""
    if not new:
        return []
    user_id = require_found(connection.execute(_select_owner, {"thread_id": thread_id}).scalar(), f"thread {thread_id}")
    if connection.dialect.name == "postgresql":
        # Numbers must become visible in order, or a reader that saw a later one would miss an earlier one.
        connection.execute(_lock_writers, {"user_id": user_id})
    rows: list[dict[str, object]] = [{"thread_id": thread_id, "user_id": user_id, **dict(event)} for event in new]
    return sorted(
        (_event_from_row(row) for row in _insert_event.insert_many(connection, rows)), key=lambda event: event.seq
    )


def list_events_after(
    connection: Connection, thread_id: str | None, user_id: str, seq: int = 0, limit: int = 500
) -> list[StoredEvent]:
    query = _select_after if thread_id is None else _select_after_in_thread
    parameters = {"user_id": user_id, "seq": seq, "limit": limit, "thread_id": thread_id}
    return [_event_from_row(row) for row in connection.execute(query, parameters).mappings()]


def list_said_after(connection: Connection, user_id: str, seq: int, since: datetime, limit: int) -> list[StoredEvent]:
    """Lists what was said to a person and asked of them after an event and a time, oldest first."""
    parameters = {"user_id": user_id, "seq": seq, "limit": limit, "since": since}
    return [_event_from_row(row) for row in connection.execute(_select_said, parameters).mappings()]


def list_message_events(connection: Connection, message_id: str, user_id: str) -> list[StoredEvent]:
    parameters = {"message_id": message_id, "user_id": user_id}
    return [_event_from_row(row) for row in connection.execute(_select_of_message, parameters).mappings()]


def list_tool_events(connection: Connection, message_ids: Sequence[str], user_id: str) -> dict[str, list[StoredEvent]]:
    """Lists what happened with tools in the turns of these messages, and notices, by message."""
    found: dict[str, list[StoredEvent]] = {}
    for at in range(0, len(message_ids), _IDS_AT_ONCE):
        parameters = {"user_id": user_id, "ids": message_ids[at : at + _IDS_AT_ONCE]}
        for row in connection.execute(_select_of_tools, parameters).mappings():
            event = _event_from_row(row)
            found.setdefault(event.message_id, []).append(event)
    return found


def last_event_number(connection: Connection, user_id: str) -> int:
    """Number of a person's newest event, or 0."""
    return connection.execute(select(func.max(events.c.seq)).where(events.c.user_id == user_id)).scalar() or 0


def _event_from_row(row: RowMapping) -> StoredEvent:
    # Our own rows are valid, so validation is skipped.
    return StoredEvent.model_construct(**{str(key): value for key, value in row.items() if key != "user_id"})
