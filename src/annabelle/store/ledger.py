"""The ledger of model calls: reserved before, settled after, and counted once however often reported (CST-09).

A call that is never settled, because its process died, is given up after a while and booked at its reserved cost. A
later settlement still counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from sqlalchemy import ColumnElement, Connection, RowMapping, Text, and_, bindparam, case, func, or_, select, update

from annabelle.core.contract import ModelCall, Reserve, TokenUsage
from annabelle.core.messages import GOALS, now
from annabelle.core.tools import JsonObject
from annabelle.store import cost_control
from annabelle.store.cost_control import NO_CAPS, PeriodSpending, SpendingCaps
from annabelle.store.portable_sql import InsertNew, InsertOrUpdate
from annabelle.store.tables import goals, messages, model_calls, tasks

UNKNOWN = "unknown"
"""Outcome of a call that was given up: its cost is unknown, so the reserved one counts."""

_SETTLED = [
    "state",
    "trace_id",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost_usd",
    "provider",
    "model",
    "duration_ms",
    "outcome",
    "error_code",
    "settled_at",
]
_GIVEN_UP_AT_ONCE = 1000
_insert = InsertNew(model_calls, ["call_id"])
_settle = InsertOrUpdate(
    model_calls,
    ["call_id"],
    _SETTLED,
    only_if=or_(model_calls.c.state == "reserved", model_calls.c.outcome == UNKNOWN),
)
_known = select(
    model_calls.c.state, model_calls.c.outcome, model_calls.c.reserved_usd, model_calls.c.reserved_at,
    model_calls.c.agent_id, model_calls.c.purpose,
).where(model_calls.c.call_id == bindparam("call_id"))  # fmt: skip
_abandoned = (
    select(model_calls)
    .where(model_calls.c.state == "reserved", model_calls.c.reserved_at < bindparam("before"))
    .order_by(model_calls.c.reserved_at)
    .limit(_GIVEN_UP_AT_ONCE)
)
_give_up = (
    update(model_calls)
    .where(model_calls.c.call_id == bindparam("given_up"))
    .values(
        state="settled",
        outcome=UNKNOWN,
        input_tokens=model_calls.c.estimated_input_tokens,
        cost_usd=model_calls.c.reserved_usd,
        settled_at=bindparam("moment", type_=model_calls.c.settled_at.type),
    )
)

_goal_of_message = (
    select(func.coalesce(tasks.c.goal_id, case((messages.c.channel == GOALS, messages.c.chat_id))))
    .select_from(messages.outerjoin(tasks, and_(messages.c.channel == "task", tasks.c.id == messages.c.chat_id)))
    .where(messages.c.id == bindparam("message_id"))
)
_own_goal = select(goals.c.id).where(goals.c.id == bindparam("goal_id"), goals.c.user_id == bindparam("user_id"))

Grouping = Literal["day", "agent", "goal", "model", "purpose", "user"]
ReservationState = Literal["new", "open", "settled"]


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """Usage of one day, agent, goal, model, purpose or person. `open` calls are reserved and not settled yet."""

    key: str
    calls: int
    open: int
    unpriced: int
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class SettledCall:
    """A settlement that counted, and the periods that now need a warning."""

    agent_id: str
    usage: TokenUsage
    warnings: list[PeriodSpending]


def reserve_call(
    connection: Connection, request: Reserve, caps: SpendingCaps = NO_CAPS, at: datetime | None = None
) -> ReservationState:
    """Stores a call and reserves the most it can cost. Idempotent. Roll back the transaction on OverBudget."""
    at = at or now()
    cost_control.lock_spending(connection)
    values: JsonObject = {
        **request.model_dump(),
        "state": "reserved",
        "input_tokens": 0,
        "output_tokens": 0,
        "cached_tokens": 0,
        "reserved_at": at,
        "goal_id": _find_goal(connection, request),
    }
    if _insert.insert(connection, values) is None:
        row = connection.execute(_known, {"call_id": request.call_id}).mappings().one()
        return "open" if row["state"] == "reserved" else "settled"
    amount = cost_control.to_nano_usd(request.reserved_usd)
    if amount:
        cost_control.hold_amount(connection, at, amount, caps)
    return "new"


def settle_call(
    connection: Connection, call: ModelCall, caps: SpendingCaps = NO_CAPS, at: datetime | None = None
) -> SettledCall | None:
    """Stores how a call ended. None if it was settled before, or reserved by another agent or for another purpose."""
    at = at or now()
    cost_control.lock_spending(connection)
    row = connection.execute(_known, {"call_id": call.call_id}).mappings().first()
    if row is not None and row["state"] == "settled" and row["outcome"] != UNKNOWN:
        return None
    if row is not None and (row["agent_id"], row["purpose"]) != (call.agent_id, call.purpose):
        return None
    most = 0.0 if row is None else float(row["reserved_usd"] or 0.0)
    # An unknown cost counts as the reserved one.
    cost_usd = (most or None) if call.usage.cost_usd is None else call.usage.cost_usd
    held, cost = cost_control.to_nano_usd(most), cost_control.to_nano_usd(cost_usd or 0.0)
    given_up = row is not None and row["state"] == "settled"
    booked = cost - held if given_up else cost
    released = 0 if given_up else held
    when = at if row is None else cast("datetime", row["reserved_at"])
    settled = {**call.model_dump(exclude={"usage"}), **call.usage.model_dump(), "state": "settled", "settled_at": at}
    settled |= {"cost_usd": cost_usd, "estimated_input_tokens": 0, "reserved_at": at}
    # A call that was reserved has its goal already.
    _settle(connection, settled | {"goal_id": _find_goal(connection, call) if row is None else None})
    warnings = cost_control.book_amount(connection, when, booked, released, caps) if booked or released else []
    return SettledCall(call.agent_id, call.usage, warnings)


def settle_abandoned(connection: Connection, before: datetime, caps: SpendingCaps = NO_CAPS) -> list[SettledCall]:
    """Settles calls reserved before this moment, which can no longer be running."""
    cost_control.lock_spending(connection)
    given_up: list[SettledCall] = []
    for row in connection.execute(_abandoned, {"before": before}).mappings().all():
        connection.execute(_give_up, {"given_up": row["call_id"], "moment": now()})
        held = cost_control.to_nano_usd(float(row["reserved_usd"] or 0.0))
        warnings = cost_control.book_amount(connection, row["reserved_at"], held, held, caps) if held else []
        given_up.append(
            SettledCall(str(row["agent_id"]), TokenUsage(input_tokens=row["estimated_input_tokens"]), warnings)
        )
    return given_up


def sum_usage(connection: Connection, user_id: str | None, by: Grouping = "day") -> list[UsageTotal]:
    """Sums up model usage of one person or of all, grouped; days are UTC."""
    whose = () if user_id is None else (model_calls.c.user_id == user_id,)
    return _sum_calls(connection, _grouping_column(connection, by), *whose)


def sum_trace_usage(
    connection: Connection, user_id: str, trace_ids: Iterable[str], since: datetime
) -> dict[str, UsageTotal]:
    """Usage of each of these traces, none of which began before `since`."""
    own = model_calls.c.user_id == user_id, model_calls.c.reserved_at >= since
    found = _sum_calls(connection, model_calls.c.trace_id, *own, model_calls.c.trace_id.in_(trace_ids))
    return {one.key: one for one in found}


def _sum_calls(
    connection: Connection, column: ColumnElement[str], *conditions: ColumnElement[bool]
) -> list[UsageTotal]:
    key = column.label("key")
    query = select(
        key,
        func.count().label("calls"),
        func.count().filter(model_calls.c.state == "reserved").label("open"),
        func.count().filter(model_calls.c.price_known.is_(False)).label("unpriced"),
        func.sum(model_calls.c.input_tokens).label("input_tokens"),
        func.sum(model_calls.c.output_tokens).label("output_tokens"),
        func.sum(model_calls.c.cached_tokens).label("cached_tokens"),
        func.sum(model_calls.c.cost_usd).label("cost_usd"),
    ).where(*conditions)
    return [_total_from_row(row) for row in connection.execute(query.group_by(key).order_by(key)).mappings()]


def sum_agent_costs(connection: Connection, agent_id: str, since: datetime) -> tuple[int, float]:
    """How many calls an agent made since then, and what they cost."""
    own = model_calls.c.agent_id == agent_id, model_calls.c.reserved_at >= since
    calls, cost = connection.execute(select(func.count(), func.sum(model_calls.c.cost_usd)).where(*own)).one()
    return int(calls), float(cost or 0.0)


def list_answering_models(connection: Connection, message_ids: Sequence[str]) -> dict[str, str]:
    """The model that was called last in the turn of each of these messages, as provider/model."""
    called = select(model_calls.c.message_id, model_calls.c.provider, model_calls.c.model)
    rows = connection.execute(
        called.where(model_calls.c.message_id.in_(message_ids), model_calls.c.purpose == "chat").order_by(
            model_calls.c.reserved_at
        )
    )
    return {str(message_id): f"{provider}/{model}" for message_id, provider, model in rows}


def sum_goal_costs(connection: Connection, goal_id: str) -> tuple[int, float | None]:
    """How many calls were made for a goal and its tasks, and what they cost; None if that is not known."""
    query = select(func.count(), func.sum(model_calls.c.cost_usd)).where(model_calls.c.goal_id == goal_id)
    calls, cost = connection.execute(query).one()
    return int(calls), None if cost is None else float(cost)


def _find_goal(connection: Connection, call: Reserve | ModelCall) -> str | None:
    """The goal that a call is part of: that of its message, or without one a goal of this person that it names."""
    if call.message_id is not None:
        return connection.execute(_goal_of_message, {"message_id": call.message_id}).scalar()
    own = {"goal_id": call.goal_id, "user_id": call.user_id}
    return None if call.goal_id is None else connection.execute(_own_goal, own).scalar()


def _total_from_row(row: RowMapping) -> UsageTotal:
    usage = TokenUsage.model_validate(dict(row))
    return UsageTotal(str(row["key"]), int(row["calls"]), int(row["open"]), int(row["unpriced"]), usage)


def _grouping_column(connection: Connection, by: Grouping) -> ColumnElement[str]:
    if by == "goal":
        return func.coalesce(model_calls.c.goal_id, "")
    if by == "model":
        return model_calls.c.provider + "/" + model_calls.c.model
    if by != "day":
        return {"agent": model_calls.c.agent_id, "purpose": model_calls.c.purpose, "user": model_calls.c.user_id}[by]
    if connection.dialect.name == "sqlite":
        return func.substr(model_calls.c.reserved_at, 1, 10, type_=Text)
    return func.to_char(func.timezone("UTC", model_calls.c.reserved_at), "YYYY-MM-DD", type_=Text)
