"""The date and time as the user sees them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from annabelle.core.errors import ConfigMistake


def parse_time_zone(name: str) -> tzinfo:
    """The user's time zone; raises ConfigMistake for an unknown name (THK-04)."""
    if name.upper() in ("UTC", "ETC/UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigMistake(
            f"USER_TIMEZONE is not valid: {name!r} is no known time zone.",
            hint="Use a name of the time zone database, as in Europe/Berlin, or UTC.",
            field="USER_TIMEZONE",
        ) from error


def format_now(moment: datetime, time_zone: tzinfo) -> str:
    """`Sunday, 2026-11-15T04:40+00:00 (UTC)`: ISO 8601 with zone, to the minute."""
    local = moment.astimezone(time_zone)
    return f"{local:%A}, {local.isoformat(timespec='minutes')} ({local.tzname()})"


def format_day(moment: datetime, time_zone: tzinfo) -> str:
    """`3 May 2026`, in the user's time zone."""
    local = moment.astimezone(time_zone)
    return f"{local.day} {local:%B %Y}"
