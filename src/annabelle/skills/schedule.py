"""When a skill is due: a cron expression in a time zone, an interval, a step of days, or one moment (SKL-01).

A skill is due at instants, not at wall clock times. Where the clock is put forward, a time that does not exist is due
when the clock has moved on; where it is put back, a time that comes twice is due once. An expression that means every
hour is due in every hour that passes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject

_LONGEST_CHANGE: Final = timedelta(hours=3)
"""No clock was ever put forward or back by more."""
_FIELDS: Final = 5
_RANDOM: Final = re.compile(r"[hr](?![a-z])", re.IGNORECASE)
"""croniter would choose another time whenever it is asked."""
MOST_MINUTES: Final = 366 * 24 * 60


@dataclass(frozen=True, slots=True)
class CronSchedule:
    expression: str
    time_zone: ZoneInfo

    def next_after(self, moment: datetime) -> datetime | None:
        """The first instant after this one; None for a day that never comes, as 30 February."""
        here = moment.astimezone(self.time_zone)
        local = here.replace(tzinfo=None)
        if (quick := self._next_without_change(moment, local)) is not None:
            return quick
        walls = croniter(self.expression, local - _LONGEST_CHANGE)
        first: datetime | None = None
        while True:
            try:
                wall: datetime = walls.get_next(datetime)
            except CroniterError:
                return first
            for due in self._instants(wall):
                if due > moment and (first is None or due < first):
                    first = due
            if first is not None and wall > local + _LONGEST_CHANGE:
                return first

    def _next_without_change(self, moment: datetime, local: datetime) -> datetime | None:
        """The next instant if no clock is changed on the way there; else None."""
        try:
            wall: datetime = croniter(self.expression, local).get_next(datetime)
        except CroniterError:
            return None
        ends = (local - _LONGEST_CHANGE, local, wall, wall + _LONGEST_CHANGE)
        offsets = {end.replace(tzinfo=self.time_zone).utcoffset() for end in ends}
        if len(offsets) > 1 or wall - local > timedelta(days=1):
            return None
        due = wall.replace(tzinfo=self.time_zone).astimezone(UTC)
        return due if due > moment else None

    def _instants(self, wall: datetime) -> list[datetime]:
        """The instants at which clocks show this time: one, none or two."""
        both = [wall.replace(tzinfo=self.time_zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
        if both[0] == both[1]:
            return both[:1]
        every_hour = self.expression.split()[1].startswith("*")
        is_gap = both[0].astimezone(self.time_zone).replace(tzinfo=None) != wall
        if is_gap:
            return [] if every_hour else both[:1]
        return both if every_hour else both[:1]

    @property
    def trigger(self) -> JsonObject:
        return {"schedule": self.expression, "timezone": self.time_zone.key}


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """Due in equal steps from a first moment, whatever clocks show."""

    minutes: int
    begin: datetime

    def next_after(self, moment: datetime) -> datetime | None:
        step = timedelta(minutes=self.minutes)
        passed = max(0, (moment - self.begin) // step)
        return self.begin + (passed + 1) * step

    @property
    def trigger(self) -> JsonObject:
        return {"interval_minutes": self.minutes, "begin": self.begin.isoformat()}


@dataclass(frozen=True, slots=True)
class DayStepSchedule:
    """Due at a time of day on every so many days, counted from a first one."""

    days: int
    clock: time
    first_day: date
    time_zone: ZoneInfo

    def next_after(self, moment: datetime) -> datetime | None:
        passed = (moment.astimezone(self.time_zone).date() - self.first_day).days // self.days
        day = self.first_day + timedelta(days=max(0, passed) * self.days)
        while (due := datetime.combine(day, self.clock, self.time_zone).astimezone(UTC)) <= moment:
            day += timedelta(days=self.days)
        return due

    @property
    def trigger(self) -> JsonObject:
        return {
            "every_days": self.days,
            "clock": f"{self.clock:%H:%M}",
            "first_day": self.first_day.isoformat(),
            "timezone": self.time_zone.key,
        }


@dataclass(frozen=True, slots=True)
class OneMoment:
    """Due once."""

    at: datetime

    def next_after(self, moment: datetime) -> datetime | None:
        return self.at if self.at > moment else None

    @property
    def trigger(self) -> JsonObject:
        return {"at": self.at.isoformat()}


Schedule = CronSchedule | IntervalSchedule | DayStepSchedule | OneMoment


def read_schedule(trigger: JsonObject) -> Schedule | None:
    """The schedule of a stored trigger; None for one that is not about time."""
    if "at" in trigger:
        return OneMoment(datetime.fromisoformat(str(trigger["at"])))
    if "interval_minutes" in trigger:
        begin = datetime.fromisoformat(str(trigger["begin"]))
        return IntervalSchedule(int(str(trigger["interval_minutes"])), begin)
    if "every_days" in trigger:
        first, clock = date.fromisoformat(str(trigger["first_day"])), time.fromisoformat(str(trigger["clock"]))
        return DayStepSchedule(int(str(trigger["every_days"])), clock, first, find_time_zone(str(trigger["timezone"])))
    if "schedule" in trigger:
        return CronSchedule(str(trigger["schedule"]), find_time_zone(str(trigger["timezone"])))
    return None


def parse_cron(expression: str, time_zone: ZoneInfo) -> CronSchedule:
    fields = expression.split()
    random = any(_RANDOM.match(field) for field in fields)
    if len(fields) != _FIELDS or random or not expression.isascii() or not croniter.is_valid(expression):
        raise InvalidArguments(
            f"“{expression}” is no cron expression.",
            hint="It has five fields: minute, hour, day, month, weekday, as in 0 6 * * 1-5.",
        )
    found = CronSchedule(" ".join(fields), time_zone)
    if found.next_after(datetime.now(UTC)) is None:
        raise InvalidArguments(f"“{expression}” names a day that never comes.")
    return found


def find_time_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidArguments(
            f"There is no time zone {name}.", hint="Name a place of it, as in Europe/Berlin."
        ) from error


def find_user_zone(name: str) -> ZoneInfo:
    """The time zone of the settings; UTC if there is none of this name."""
    try:
        return find_time_zone(name)
    except InvalidArguments:
        return ZoneInfo("UTC")
