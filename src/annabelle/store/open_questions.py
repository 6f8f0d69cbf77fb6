"""Which turns wait for a person: their questions are open, or answered and not carried on yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, and_, or_, select

from annabelle.store.tables import approvals, threads

_open = or_(
    approvals.c.state == "pending",
    and_(approvals.c.state == "approved", approvals.c.resumed_by.is_(None)),
)


@dataclass(frozen=True, slots=True)
class Where:
    """Which of them are meant; what is not said does not matter."""

    thread_id: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    channel: str | None = None
    chat_id: str | None = None
    turn: str | None = None
    """The message that asks, or the one its chain of turns began with."""


def asking(connection: Connection, where: Where) -> list[str]:
    """The messages whose turns wait, oldest first."""
    wanted = {
        approvals.c.thread_id: where.thread_id,
        approvals.c.agent_id: where.agent_id,
        approvals.c.user_id: where.user_id,
        threads.c.channel: where.channel,
        threads.c.chat_id: where.chat_id,
    }
    query = (
        select(approvals.c.message_id)
        .join(threads, threads.c.id == approvals.c.thread_id)
        .where(_open, *(column == value for column, value in wanted.items() if value is not None))
        .order_by(approvals.c.created_at, approvals.c.id)
    )
    if where.turn is not None:
        query = query.where(or_(approvals.c.message_id == where.turn, approvals.c.root_id == where.turn))
    return list(dict.fromkeys(connection.execute(query).scalars()))


def due(connection: Connection, at: datetime) -> list[str]:
    """The messages with a question whose time is over."""
    query = select(approvals.c.message_id).where(approvals.c.state == "pending", approvals.c.expires_at <= at)
    return list(dict.fromkeys(connection.execute(query.order_by(approvals.c.expires_at)).scalars()))


def next_expiry(connection: Connection) -> datetime | None:
    """When the time of the next question is over."""
    query = select(approvals.c.expires_at).where(approvals.c.state == "pending").order_by(approvals.c.expires_at)
    return cast("datetime | None", connection.execute(query.limit(1)).scalar())


def forgotten(connection: Connection, digest: str) -> list[str]:
    """The messages whose open questions were about something that was forgotten."""
    query = select(approvals.c.message_id).where(_open, approvals.c.digest == digest)
    return list(dict.fromkeys(connection.execute(query).scalars()))
