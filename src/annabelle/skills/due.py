"""Which fires of a skill are due, and what becomes of those that were missed (SKL-08)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from annabelle.skills.schedule import Schedule
from annabelle.skills.skill_input import MissedPolicy

ON_TIME: Final = timedelta(minutes=10)
"""A fire that is no later than this was not missed."""
MOST_AT_ONCE: Final = 200
"""Of those missed in a row only so many are written down; the ones between them and now are not."""
RETRY_MINUTES: Final = (1, 5, 15, 60)
"""After the first, second … failure in a row; one more disables the skill (SKL-04)."""

PlannedState = Literal["due", "missed"]


@dataclass(frozen=True, slots=True)
class DueFires:
    fires: tuple[tuple[datetime, PlannedState], ...]
    next_due: datetime | None


def plan_due(schedule: Schedule, next_due: datetime, now: datetime, missed: MissedPolicy) -> DueFires:
    """All instants from `next_due` to now: the last one is run if it is on time or to be made up for."""
    instants, following = _collect(schedule, next_due, now)
    if following is not None and following <= now:  # too many: of the rest only those that are on time
        newest, following = _collect(schedule, schedule.next_after(max(instants[-1], now - ON_TIME)), now)
        instants += newest
    return DueFires(_judge(instants, now, missed), following)


def _collect(schedule: Schedule, first: datetime | None, now: datetime) -> tuple[list[datetime], datetime | None]:
    """The instants from the first one to now, but not too many, and the one after them."""
    instants, following = list[datetime](), first
    while following is not None and following <= now and len(instants) < MOST_AT_ONCE:
        instants.append(following)
        following = schedule.next_after(following)
    return instants, following


def _judge(instants: list[datetime], now: datetime, missed: MissedPolicy) -> tuple[tuple[datetime, PlannedState], ...]:
    runs = bool(instants) and (missed == "run" or now - instants[-1] <= ON_TIME)
    return tuple((at, "due" if runs and at == instants[-1] else "missed") for at in instants)


def retry_after(failures: int) -> timedelta | None:
    """How long to wait after so many failures in a row; None if it is disabled now."""
    return timedelta(minutes=RETRY_MINUTES[failures - 1]) if failures <= len(RETRY_MINUTES) else None
