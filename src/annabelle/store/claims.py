"""Claims: a thread belongs to one turn at a time, whose owner and start are known (DUR-04, AGE-06)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, select, update

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.messages import StoredMessage, message_from_row
from annabelle.store.portable_sql import InsertNew, read_all, read_first
from annabelle.store.tables import claims, messages, threads

_insert_claim = InsertNew(claims, ["thread_id"])
_count_claims = select(func.count()).select_from(claims).where(claims.c.owner == bindparam("owner"))
_earlier_messages = messages.alias("earlier")
_select_waiting = (
    select(messages)
    .where(
        messages.c.state == "queued",
        messages.c.background == bindparam("background"),
        ~select(claims.c.thread_id).where(claims.c.thread_id == messages.c.thread_id).exists(),
        ~select(_earlier_messages.c.id)
        .where(
            _earlier_messages.c.thread_id == messages.c.thread_id,
            _earlier_messages.c.state == "queued",
            _earlier_messages.c.position < messages.c.position,
        )
        .exists(),
    )
    .order_by(messages.c.position)
    .limit(bindparam("free"))
    # PostgreSQL: skips rows another owner is claiming; they are seen later with their new state.
    .with_for_update(of=messages, skip_locked=True)
)
_select_waiting_in_thread = _select_waiting.where(messages.c.thread_id == bindparam("thread_id"))
_mark_running = update(messages).where(messages.c.id == bindparam("message")).values(state="running")
_delete_claim = delete(claims).where(claims.c.message_id == bindparam("message"))
_select_claimed = (
    select(messages)
    .join(claims, claims.c.message_id == messages.c.id)
    .where(claims.c.owner == bindparam("owner"))
    .order_by(messages.c.position)
)


@dataclass(frozen=True, slots=True)
class ClaimedMessage:
    thread_id: str
    message_id: str
    message: StoredMessage


def claim_next_messages(
    connection: Connection,
    owner: str,
    max_running: int,
    thread_id: str | None = None,
    *,
    background: bool = False,
    at: datetime | None = None,
) -> list[ClaimedMessage]:
    """Claims the oldest waiting message of each unclaimed thread, up to `max_running` claims of this owner.

    People's messages, or those of work in the background.
    """
    free = max_running - connection.execute(_count_claims, {"owner": owner}).scalar_one()
    if free <= 0:
        return []
    query = _select_waiting if thread_id is None else _select_waiting_in_thread
    parameters: JsonObject = {"free": free, "background": background}
    if thread_id is not None:
        parameters["thread_id"] = thread_id
    taken: list[ClaimedMessage] = []
    for row in connection.execute(query, parameters).mappings().all():
        message = replace(message_from_row(row), state="running")
        claim = {"thread_id": message.thread_id, "message_id": message.id, "owner": owner, "claimed_at": at or now()}
        if _insert_claim.insert(connection, claim) is not None:
            connection.execute(_mark_running, {"message": message.id})
            taken.append(ClaimedMessage(message.thread_id, message.id, message))
    return taken


def release_claim(connection: Connection, message_id: str) -> bool:
    """Releases the thread of a finished message; returns whether it was claimed."""
    return connection.execute(_delete_claim, {"message": message_id}).rowcount == 1


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A thread that a turn has to itself: whose, for which message, and since when (AGE-06)."""

    thread_id: str
    message_id: str
    user_id: str
    owner: str
    claimed_at: datetime


_held_claims = select(claims, messages.c.user_id).join(messages, messages.c.id == claims.c.message_id)


def list_held_claims(connection: Connection, before: datetime) -> list[HeldClaim]:
    """Lists what has been claimed since before this moment, by any owner."""
    return read_all(connection, HeldClaim, _held_claims.where(claims.c.claimed_at < before))


def find_claim(connection: Connection, thread_id: str) -> HeldClaim | None:
    return read_first(connection, HeldClaim, _held_claims.where(claims.c.thread_id == thread_id))


def list_agent_claims(connection: Connection, agent_id: str) -> list[HeldClaim]:
    """What an agent has under way, the oldest first."""
    of_agent = _held_claims.join(threads, threads.c.id == claims.c.thread_id)
    running = of_agent.where(threads.c.agent_id == agent_id).order_by(claims.c.claimed_at)
    return read_all(connection, HeldClaim, running)


def list_claims(connection: Connection, owner: str) -> list[ClaimedMessage]:
    """Lists this owner's claims in order, to resume them after a restart."""
    claimed = read_all(connection, StoredMessage, _select_claimed, {"owner": owner})
    return [ClaimedMessage(message.thread_id, message.id, message) for message in claimed]
