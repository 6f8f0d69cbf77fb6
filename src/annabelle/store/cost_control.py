"""Spending per day and month in billionths of a dollar (TRU-01), calls of the last hour (CST-01), paused agents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection, RowMapping, bindparam, func, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

from annabelle.core.messages import now
from annabelle.store.portable_sql import InsertOrUpdate, read_all, read_first
from annabelle.store.tables import agent_states, model_calls, spending

NANO: Final = 1_000_000_000
_MOST_USD: Final = 1_000_000_000.0
_DAY_LENGTH: Final = len("2026-07-03")
# Shared by all ledgers of a database, so that only one writes at a time.
_lock_statement = text("SELECT pg_advisory_xact_lock(7239055017)")


def _build_addition(insert: Insert) -> Insert:
    assert isinstance(insert, sqlite.Insert | postgresql.Insert)
    return insert.on_conflict_do_update(
        index_elements=["period"],
        set_={
            "settled_nano_usd": spending.c.settled_nano_usd + insert.excluded.settled_nano_usd,
            "reserved_nano_usd": spending.c.reserved_nano_usd + insert.excluded.reserved_nano_usd,
        },
    ).returning(*spending.c)


_add_statements: Final = {
    "sqlite": _build_addition(sqlite.insert(spending)),
    "postgresql": _build_addition(postgresql.insert(spending)),
}
_select_periods = select(spending).where(spending.c.period.in_(bindparam("periods", expanding=True)))
_mark_warned = (
    update(spending)
    .where(spending.c.period == bindparam("warned"), spending.c.warned_at.is_(None))
    .values(warned_at=bindparam("moment", type_=spending.c.warned_at.type))
)


@dataclass(frozen=True, slots=True)
class SpendingCaps:
    """Caps per day and month, in billionths of a dollar; None is no cap."""

    day: int | None = None
    month: int | None = None
    warning_share: float = 0.8

    def cap_for(self, period: str) -> int | None:
        return self.day if len(period) == _DAY_LENGTH else self.month


NO_CAPS: Final = SpendingCaps()


@dataclass(frozen=True, slots=True)
class PeriodSpending:
    """Spending of a day (2026-07-03) or a month (2026-07)."""

    period: str
    settled: int = 0
    reserved: int = 0
    warned_at: datetime | None = None


class OverBudget(Exception):
    """A reservation exceeds a cap; `spent` is the spending without it."""

    def __init__(self, spent: PeriodSpending, cap: int, asked: int) -> None:
        super().__init__(spent.period)
        self.spent, self.cap, self.asked = spent, cap, asked


def to_nano_usd(usd: float) -> int:
    """Converts dollars to billionths, rounded up."""
    return math.ceil(round(min(max(usd, 0.0), _MOST_USD) * NANO, 3))


def periods_of(at: datetime) -> tuple[str, str]:
    """Returns the UTC day and month a moment belongs to."""
    utc = at.astimezone(UTC)
    return f"{utc:%Y-%m-%d}", f"{utc:%Y-%m}"


def lock_spending(connection: Connection) -> None:
    """Blocks other bookings until the transaction ends. SQLite has a single writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_lock_statement)


def hold_amount(connection: Connection, at: datetime, amount: int, caps: SpendingCaps) -> None:
    """Reserves the most a call can cost. Raises OverBudget; the transaction must then be rolled back."""
    for period in periods_of(at):
        spent = _change_period(connection, period, 0, amount)
        cap = caps.cap_for(period)
        if cap is not None and spent.settled + spent.reserved > cap:
            before = PeriodSpending(period, spent.settled, spent.reserved - amount, spent.warned_at)
            raise OverBudget(before, cap, amount)


def book_amount(
    connection: Connection, at: datetime, settled: int, released: int, caps: SpendingCaps
) -> list[PeriodSpending]:
    """Books the actual cost in the periods of the reservation. Returns periods that now need a warning."""
    warnings: list[PeriodSpending] = []
    for period in periods_of(at):
        spent = _change_period(connection, period, settled, -released)
        cap = caps.cap_for(period)
        if cap is None or spent.warned_at is not None or spent.settled < cap * caps.warning_share:
            continue
        if connection.execute(_mark_warned, {"warned": period, "moment": now()}).rowcount:
            warnings.append(spent)
    return warnings


def read_spending(connection: Connection, at: datetime) -> tuple[PeriodSpending, PeriodSpending]:
    names = periods_of(at)
    rows = connection.execute(_select_periods, {"periods": list(names)}).mappings().all()
    found = {spent.period: spent for spent in map(_spending_from_row, rows)}
    day, month = (found.get(name, PeriodSpending(name)) for name in names)
    return day, month


def _change_period(connection: Connection, period: str, settled: int, reserved: int) -> PeriodSpending:
    values = {"period": period, "settled_nano_usd": settled, "reserved_nano_usd": reserved, "warned_at": None}
    rows: Sequence[RowMapping] = connection.execute(_add_statements[connection.dialect.name], values).mappings().all()
    return _spending_from_row(rows[0])


def _spending_from_row(row: RowMapping) -> PeriodSpending:
    return PeriodSpending(
        str(row["period"]), int(row["settled_nano_usd"]), int(row["reserved_nano_usd"]), row["warned_at"]
    )


_select_newest_call = select(func.max(model_calls.c.reserved_at, type_=model_calls.c.reserved_at.type)).where(
    model_calls.c.agent_id == bindparam("agent_id")
)
_select_calls_since = (
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
    minutes_ago: int
    input_tokens: int
    output_tokens: int


def list_last_hour(connection: Connection, agent_id: str, at: datetime, forgotten: datetime | None) -> list[RecentCall]:
    """Lists an agent's calls of the last hour, oldest first, leaving out those up to `forgotten`.

    If the clock went back, some calls are in the future: the hour then ends at the newest one, so that it is neither
    empty nor too long.
    """
    newest: datetime | None = connection.execute(_select_newest_call, {"agent_id": agent_id}).scalar()
    end = at if newest is None else max(at, newest)
    since = end - _HOUR if forgotten is None else max(end - _HOUR, forgotten)
    rows = connection.execute(_select_calls_since, {"agent_id": agent_id, "since": since})
    return [RecentCall(int((end - made).total_seconds() // 60), used, said) for made, used, said in rows]


_upsert_agent_state = InsertOrUpdate(agent_states, ["agent_id"], ["paused", "reason", "paused_at", "window_from"])


@dataclass(frozen=True, slots=True)
class AgentState:
    agent_id: str
    paused: bool = False
    reason: str | None = None
    paused_at: datetime | None = None
    window_from: datetime | None = None


def get_agent_state(connection: Connection, agent_id: str) -> AgentState:
    found = read_first(connection, AgentState, select(agent_states).where(agent_states.c.agent_id == agent_id))
    return found or AgentState(agent_id)


def list_agent_states(connection: Connection) -> dict[str, AgentState]:
    """Lists every agent that was ever paused."""
    states = read_all(connection, AgentState, select(agent_states).order_by(agent_states.c.agent_id))
    return {state.agent_id: state for state in states}


def pause_agent(connection: Connection, agent_id: str, reason: str) -> AgentState:
    """Pauses an agent; one already paused keeps its reason and time."""
    state = get_agent_state(connection, agent_id)
    if state.paused:
        return state
    return _write_agent_state(connection, AgentState(agent_id, True, reason, now(), state.window_from))


def resume_agent(connection: Connection, agent_id: str, *, reset_window: bool = False) -> AgentState:
    """Resumes an agent; with `reset_window` its spending so far no longer counts."""
    window_from = now() if reset_window else get_agent_state(connection, agent_id).window_from
    return _write_agent_state(connection, AgentState(agent_id, window_from=window_from))


def _write_agent_state(connection: Connection, state: AgentState) -> AgentState:
    _upsert_agent_state(connection, asdict(state))
    return state
