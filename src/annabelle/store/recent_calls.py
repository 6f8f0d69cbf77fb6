"""The model calls of an agent's last hour, for whoever watches how fast it spends (CST-01)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, func, select

from annabelle.store.tables import model_calls

_newest = select(func.max(model_calls.c.reserved_at, type_=model_calls.c.reserved_at.type)).where(
    model_calls.c.agent_id == bindparam("agent_id")
)
_since = (
    select(model_calls.c.reserved_at, model_calls.c.input_tokens, model_calls.c.output_tokens)
    .where(
        model_calls.c.agent_id == bindparam("agent_id"),
        model_calls.c.reserved_at > bindparam("since", type_=model_calls.c.reserved_at.type),
        model_calls.c.state == "settled",
    )
    .order_by(model_calls.c.reserved_at)
)
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RecentCall:
    """One settled call, and how long ago it was made."""

    minutes_ago: int
    input_tokens: int
    output_tokens: int


def last_hour(connection: Connection, agent_id: str, at: datetime, forgotten: datetime | None) -> list[RecentCall]:
    """An agent's calls of the last hour, oldest first, without those up to the moment `forgotten`.

    A clock that went back while nobody ran leaves calls in the future: the hour then ends with the newest of them, so
    that it is neither empty nor longer than an hour.
    """
    newest: datetime | None = connection.execute(_newest, {"agent_id": agent_id}).scalar()
    end = at if newest is None else max(at, newest)
    since = end - _HOUR if forgotten is None else max(end - _HOUR, forgotten)
    rows = connection.execute(_since, {"agent_id": agent_id, "since": since})
    return [RecentCall(int((end - made).total_seconds() // 60), used, said) for made, used, said in rows]
