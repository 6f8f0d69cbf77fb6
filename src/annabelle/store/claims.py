"""Claims: the one row per thread that says which message is being worked on, and by whom (DUR-04)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, delete, func, select, update

from annabelle.core.messages import now
from annabelle.store.statements import InsertNew
from annabelle.store.stored_message import StoredMessage, stored
from annabelle.store.tables import claims, messages

_insert = InsertNew(claims, ["thread_id"])
_mine = select(func.count()).select_from(claims).where(claims.c.owner == bindparam("owner"))
_earlier = messages.alias("earlier")
_waiting = (
    select(messages)
    .where(
        messages.c.state == "queued",
        ~select(claims.c.thread_id).where(claims.c.thread_id == messages.c.thread_id).exists(),
        ~select(_earlier.c.id)
        .where(
            _earlier.c.thread_id == messages.c.thread_id,
            _earlier.c.state == "queued",
            _earlier.c.position < messages.c.position,
        )
        .exists(),
    )
    .order_by(messages.c.position)
    .limit(bindparam("free"))
    # PostgreSQL: what another owner is taking right now is passed over, and seen again with its new state.
    .with_for_update(of=messages, skip_locked=True)
)
_waiting_here = _waiting.where(messages.c.thread_id == bindparam("thread_id"))
_run = update(messages).where(messages.c.id == bindparam("message")).values(state="running")
_release = delete(claims).where(claims.c.message_id == bindparam("message"))
_held = (
    select(messages)
    .join(claims, claims.c.message_id == messages.c.id)
    .where(claims.c.owner == bindparam("owner"))
    .order_by(messages.c.position)
)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A message that is this owner's to work on."""

    thread_id: str
    message_id: str
    message: StoredMessage


def claim_next(connection: Connection, owner: str, max_running: int, thread_id: str | None = None) -> list[Claimed]:
    """Take the oldest waiting message of each thread nobody works on, up to `max_running` claims of this owner."""
    free = max_running - connection.execute(_mine, {"owner": owner}).scalar_one()
    if free <= 0:
        return []
    query = _waiting if thread_id is None else _waiting_here
    parameters = {"free": free} if thread_id is None else {"free": free, "thread_id": thread_id}
    taken: list[Claimed] = []
    for row in connection.execute(query, parameters).mappings().all():
        message = replace(stored(row), state="running")
        claim = {"thread_id": message.thread_id, "message_id": message.id, "owner": owner, "claimed_at": now()}
        if _insert.one(connection, claim) is not None:
            connection.execute(_run, {"message": message.id})
            taken.append(Claimed(message.thread_id, message.id, message))
    return taken


def release(connection: Connection, message_id: str) -> bool:
    """Let the thread of a finished message go on; whether it was held."""
    return connection.execute(_release, {"message": message_id}).rowcount == 1


def held(connection: Connection, owner: str) -> list[Claimed]:
    """Everything this owner has claimed, in order; what a restarted owner has to take up again."""
    rows = connection.execute(_held, {"owner": owner}).mappings()
    return [Claimed(message.thread_id, message.id, message) for message in map(stored, rows)]
