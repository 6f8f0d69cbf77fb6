"""Claims: the one row per thread that says which message is being worked on, and by whom (DUR-04)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select, update

from annabelle.core.messages import now
from annabelle.store.messages import StoredMessage, stored
from annabelle.store.statements import insert_new
from annabelle.store.tables import claims, messages


@dataclass(frozen=True, slots=True)
class Claimed:
    """A message that is this owner's to work on."""

    thread_id: str
    message_id: str
    message: StoredMessage


def claim_next(connection: Connection, owner: str, max_running: int, thread_id: str | None = None) -> list[Claimed]:
    """Take the oldest waiting message of each thread nobody works on, up to `max_running` claims of this owner."""
    mine = connection.execute(select(func.count()).select_from(claims).where(claims.c.owner == owner)).scalar_one()
    free = max_running - mine
    if free <= 0:
        return []
    earlier = messages.alias("earlier")
    waiting = (
        select(messages)
        .where(
            messages.c.state == "queued",
            ~select(claims.c.thread_id).where(claims.c.thread_id == messages.c.thread_id).exists(),
            ~select(earlier.c.id)
            .where(
                earlier.c.thread_id == messages.c.thread_id,
                earlier.c.state == "queued",
                earlier.c.position < messages.c.position,
            )
            .exists(),
        )
        .order_by(messages.c.position)
        .limit(free)
        # PostgreSQL: what another owner is taking right now is passed over, and seen again with its new state.
        .with_for_update(of=messages, skip_locked=True)
    )
    if thread_id is not None:
        waiting = waiting.where(messages.c.thread_id == thread_id)
    taken: list[Claimed] = []
    for row in connection.execute(waiting).mappings().all():
        values: dict[str, object] = {
            "thread_id": row["thread_id"],
            "message_id": row["id"],
            "owner": owner,
            "claimed_at": now(),
        }
        if insert_new(connection, claims, values, [claims.c.thread_id]):
            connection.execute(update(messages).where(messages.c.id == row["id"]).values(state="running"))
            message = stored(row)
            taken.append(Claimed(message.thread_id, message.id, message))
    return taken


def release(connection: Connection, message_id: str) -> bool:
    """Let the thread of a finished message go on; whether it was held."""
    return connection.execute(delete(claims).where(claims.c.message_id == message_id)).rowcount == 1


def held(connection: Connection, owner: str) -> list[Claimed]:
    """Everything this owner has claimed, in order; what a restarted owner has to take up again."""
    rows = connection.execute(
        select(messages)
        .join(claims, claims.c.message_id == messages.c.id)
        .where(claims.c.owner == owner)
        .order_by(messages.c.position)
    ).mappings()
    return [Claimed(message.thread_id, message.id, message) for message in map(stored, rows)]
