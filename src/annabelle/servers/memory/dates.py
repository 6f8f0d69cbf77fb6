"""Dates as people write them, read in the user's own time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from annabelle.core.errors import ConfigMistake, InvalidArguments

_HOW = "Write it as in 2026-01-31 or 2026-01-31T08:00."


def zone_of(name: str) -> ZoneInfo:
    """The user's time zone by its name, as in Europe/Berlin."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        raise ConfigMistake(f"USER_TIMEZONE is not a time zone: {name!r}.", field="USER_TIMEZONE") from error


def first_moment(text: str, zone: ZoneInfo, field: str) -> datetime:
    """The moment a date begins, or the given time; without an offset it is the user's own."""
    return _read(text, zone, field, days=0)


def moment_after(text: str, zone: ZoneInfo, field: str) -> datetime:
    """The first moment that is no longer meant: the next day's for a date, the next microsecond's for a time."""
    return _read(text, zone, field, days=1)


def _read(text: str, zone: ZoneInfo, field: str, days: int) -> datetime:
    wanted = text.strip()
    try:
        if len(wanted) <= len("2026-01-31"):
            day = date.fromisoformat(wanted) + timedelta(days=days)
            return datetime.combine(day, time(), zone).astimezone(UTC)
        moment = datetime.fromisoformat(wanted)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return aware.astimezone(UTC) + timedelta(microseconds=days)
    except (ValueError, OverflowError) as error:
        raise InvalidArguments(f"{field} is not a date: {wanted[:40]!r}.", hint=_HOW, field=field) from error


def span(date_from: str | None, date_to: str | None, zone: ZoneInfo) -> tuple[datetime | None, datetime | None]:
    """The moments between two dates, both included; one that ends before it begins is refused."""
    since = None if date_from is None else first_moment(date_from, zone, "date_from")
    until = None if date_to is None else moment_after(date_to, zone, "date_to")
    if since is not None and until is not None and until <= since:
        raise InvalidArguments(
            f"date_to ({date_to}) is before date_from ({date_from}).", hint="Swap them.", field="date_to"
        )
    return since, until
