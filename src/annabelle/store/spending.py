"""What each day and month has spent and holds back, in whole billionths of a dollar: a cap must not drift (TRU-01).

Every change adds to its row, and is checked against the cap in the same transaction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection, RowMapping, bindparam, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import Insert

from annabelle.core.messages import now
from annabelle.store.tables import spending

NANO: Final = 1_000_000_000
_MOST_USD: Final = 1_000_000_000.0
_DAY_LENGTH: Final = len("2026-07-03")
# One number for all ledgers of a database: who books waits for whoever is booking.
_lock = text("SELECT pg_advisory_xact_lock(7239055017)")


def _adding(insert: Insert) -> Insert:
    assert isinstance(insert, sqlite.Insert | postgresql.Insert)
    return insert.on_conflict_do_update(
        index_elements=["period"],
        set_={
            "settled_nano_usd": spending.c.settled_nano_usd + insert.excluded.settled_nano_usd,
            "reserved_nano_usd": spending.c.reserved_nano_usd + insert.excluded.reserved_nano_usd,
        },
    ).returning(*spending.c)


_add: Final = {"sqlite": _adding(sqlite.insert(spending)), "postgresql": _adding(postgresql.insert(spending))}
_some = select(spending).where(spending.c.period.in_(bindparam("periods", expanding=True)))
_mark = (
    update(spending)
    .where(spending.c.period == bindparam("warned"), spending.c.warned_at.is_(None))
    .values(warned_at=bindparam("moment", type_=spending.c.warned_at.type))
)


@dataclass(frozen=True, slots=True)
class Caps:
    """The most a day and a month may cost, in billionths of a dollar; None is no cap."""

    day: int | None = None
    month: int | None = None
    warning_share: float = 0.8

    def of(self, period: str) -> int | None:
        return self.day if len(period) == _DAY_LENGTH else self.month


NO_CAPS: Final = Caps()


@dataclass(frozen=True, slots=True)
class Spent:
    """How a day (2026-07-03) or a month (2026-07) stands."""

    period: str
    settled: int = 0
    reserved: int = 0
    warned_at: datetime | None = None


class OverBudget(Exception):
    """A reservation does not fit; `spent` is how things stand without it."""

    def __init__(self, spent: Spent, cap: int, asked: int) -> None:
        super().__init__(spent.period)
        self.spent, self.cap, self.asked = spent, cap, asked


def nano(usd: float) -> int:
    """Dollars as a whole number, never less than they were."""
    return math.ceil(round(min(max(usd, 0.0), _MOST_USD) * NANO, 3))


def periods(at: datetime) -> tuple[str, str]:
    """The day and the month a moment is counted in, both UTC."""
    utc = at.astimezone(UTC)
    return f"{utc:%Y-%m-%d}", f"{utc:%Y-%m}"


def lock(connection: Connection) -> None:
    """Let nobody else book until this transaction is over. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_lock)


def hold(connection: Connection, at: datetime, amount: int, caps: Caps) -> None:
    """Hold back the most a call can cost. Raises OverBudget, and the transaction must then be given up."""
    for period in periods(at):
        spent = _change(connection, period, 0, amount)
        cap = caps.of(period)
        if cap is not None and spent.settled + spent.reserved > cap:
            before = Spent(period, spent.settled, spent.reserved - amount, spent.warned_at)
            raise OverBudget(before, cap, amount)


def book(connection: Connection, at: datetime, settled: int, released: int, caps: Caps) -> list[Spent]:
    """Book what a call really cost in the periods it was reserved in. Tells which of them are worth a warning now."""
    warnings: list[Spent] = []
    for period in periods(at):
        spent = _change(connection, period, settled, -released)
        cap = caps.of(period)
        if cap is None or spent.warned_at is not None or spent.settled < cap * caps.warning_share:
            continue
        if connection.execute(_mark, {"warned": period, "moment": now()}).rowcount:
            warnings.append(spent)
    return warnings


def standing(connection: Connection, at: datetime) -> tuple[Spent, Spent]:
    """How the day and the month of a moment stand."""
    names = periods(at)
    rows = connection.execute(_some, {"periods": list(names)}).mappings().all()
    found = {spent.period: spent for spent in map(_spent, rows)}
    day, month = (found.get(name, Spent(name)) for name in names)
    return day, month


def _change(connection: Connection, period: str, settled: int, reserved: int) -> Spent:
    values = {"period": period, "settled_nano_usd": settled, "reserved_nano_usd": reserved, "warned_at": None}
    rows: Sequence[RowMapping] = connection.execute(_add[connection.dialect.name], values).mappings().all()
    return _spent(rows[0])


def _spent(row: RowMapping) -> Spent:
    return Spent(str(row["period"]), int(row["settled_nano_usd"]), int(row["reserved_nano_usd"]), row["warned_at"])
