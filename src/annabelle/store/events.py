"""Events: what happened in each turn, numbered for readers that come back (THR-04)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, RowMapping, bindparam, func, select

from annabelle.core.errors import NotFound
from annabelle.core.events import StoredEvent, TurnEvent
from annabelle.store.statements import InsertNew
from annabelle.store.tables import events, threads

_insert = InsertNew(events, ["message_id", "key"], whole_rows=True)
_owner = select(threads.c.user_id).where(threads.c.id == bindparam("thread_id"))
_one_writer = select(func.pg_advisory_xact_lock(func.hashtext(bindparam("user_id"))))
_after = (
    select(events)
    .where(events.c.user_id == bindparam("user_id"), events.c.seq > bindparam("seq"))
    .order_by(events.c.seq)
    .limit(bindparam("limit"))
)
_after_here = _after.where(events.c.thread_id == bindparam("thread_id"))
_of_message = (
    select(events)
    .where(events.c.message_id == bindparam("message_id"), events.c.user_id == bindparam("user_id"))
    .order_by(events.c.seq)
)


def append(connection: Connection, thread_id: str, new: Sequence[TurnEvent]) -> list[StoredEvent]:
    """Write events down in order and give back the new ones; a key its message already has is passed over."""
    if not new:
        return []
    user_id = connection.execute(_owner, {"thread_id": thread_id}).scalar()
    if user_id is None:
        raise NotFound(f"There is no thread {thread_id}.")
    if connection.dialect.name == "postgresql":
        # Numbers must become visible in their order, or a reader that saw the later one never asks for the earlier.
        connection.execute(_one_writer, {"user_id": user_id})
    rows: list[dict[str, object]] = [
        {
            "thread_id": thread_id,
            "user_id": user_id,
            "message_id": event.message_id,
            "key": event.key,
            "type": event.type,
            "step": event.step,
            "attempt": event.attempt,
            "data": event.data,
            "at": event.at,
        }
        for event in new
    ]
    return sorted((_event(row) for row in _insert.many(connection, rows)), key=lambda event: event.seq)


def after(
    connection: Connection, thread_id: str | None, user_id: str, seq: int = 0, limit: int = 500
) -> list[StoredEvent]:
    """A person's events behind `seq`, of one thread or of all their threads."""
    parameters: dict[str, object] = {"user_id": user_id, "seq": seq, "limit": limit}
    if thread_id is None:
        return [_event(row) for row in connection.execute(_after, parameters).mappings()]
    parameters["thread_id"] = thread_id
    return [_event(row) for row in connection.execute(_after_here, parameters).mappings()]


def of_message(connection: Connection, message_id: str, user_id: str) -> list[StoredEvent]:
    """Every event of one message of a person, in order."""
    parameters = {"message_id": message_id, "user_id": user_id}
    return [_event(row) for row in connection.execute(_of_message, parameters).mappings()]


def last_seq(connection: Connection, user_id: str) -> int:
    """The number of a person's newest event; 0 when there is none."""
    return connection.execute(select(func.max(events.c.seq)).where(events.c.user_id == user_id)).scalar() or 0


def _event(row: RowMapping) -> StoredEvent:
    # Our own rows were valid when they were written.
    return StoredEvent.model_construct(**{str(key): value for key, value in row.items() if key != "user_id"})
