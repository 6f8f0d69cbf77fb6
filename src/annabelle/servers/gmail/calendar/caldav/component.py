"""The little of the iCalendar library that is used here, with types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Protocol, cast

from annabelle.servers.gmail.calendar.event import Time
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    import icalendar
    import recurring_ical_events
else:
    icalendar = deferred_module("icalendar")
    recurring_ical_events = deferred_module("recurring_ical_events")

UNREADABLE = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError)
"""What the libraries raise on the calendar data of a careless server."""

_FOLD = re.compile(r"\r?\n[ \t]")
_ZONES = re.compile(r"^BEGIN:VTIMEZONE\s*$.*?^END:VTIMEZONE\s*$", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_RULES = re.compile(r"^RRULE[^:\n]*:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_ZONE_RULE = re.compile(
    r"(?=.*FREQ=YEARLY)(?!.*FREQ=.*FREQ=)(?!.*BY(?:HOUR|MINUTE|SECOND|SETPOS|WEEKNO|YEARDAY))(?!.*INTERVAL=0).*",
    re.IGNORECASE,
)


class Component(Protocol):
    """A VCALENDAR, VEVENT or VALARM: properties by their names, and other components in it."""

    subcomponents: list[Component]

    def add(self, name: str, value: object) -> None: ...
    def get(self, name: str) -> object: ...
    def pop(self, name: str, default: object = None) -> object: ...
    def __contains__(self, name: object) -> bool: ...
    def walk(self, name: str) -> list[Component]: ...
    def add_component(self, component: Component) -> None: ...
    def add_missing_timezones(self) -> None: ...
    def to_ical(self) -> bytes: ...


def new_calendar() -> Component:
    calendar = cast("Component", icalendar.Calendar())
    calendar.add("VERSION", "2.0")
    calendar.add("PRODID", "-//Annabelle//Calendar//EN")
    return calendar


def new_vevent() -> Component:
    return cast("Component", icalendar.Event())


def new_valarm() -> Component:
    return cast("Component", icalendar.Alarm())


def new_address(email: str) -> object:
    return icalendar.vCalAddress(f"mailto:{email}")


def read_calendar(data: bytes | str) -> Component:
    """Raises one of UNREADABLE on data that is no calendar."""
    _check_zones(data if isinstance(data, str) else data.decode(errors="replace"))
    parsed = icalendar.Calendar.from_ical(data)
    if not isinstance(parsed, icalendar.Calendar):
        raise ValueError("not a calendar")
    return cast("Component", parsed)


def _check_zones(text: str) -> None:
    """Clocks change by the year. A zone whose clocks change by the second is made to keep a reader busy for ever, and
    the library asks it for the time as soon as it has read it."""
    for zone in _ZONES.findall(_FOLD.sub("", text)):
        if not all(_ZONE_RULE.fullmatch(rule) for rule in _RULES.findall(zone)):
            raise ValueError("a zone that is none")


def read_vevent(lines: Sequence[str]) -> Component:
    return cast("Component", icalendar.Event.from_ical("\r\n".join(("BEGIN:VEVENT", *lines, "END:VEVENT", ""))))


def unroll(calendar: Component, start: datetime, end: datetime) -> list[Component]:
    """Every event of a time, repeating ones one by one, each with the RECURRENCE-ID that tells which it is."""
    query = recurring_ical_events.of(cast("icalendar.Calendar", calendar))
    return cast("list[Component]", query.between(start, end))


def time_of(component: Component, name: str) -> Time | None:
    """A day, or a moment that may still lack a zone."""
    value = cast("object", getattr(component.get(name), "dt", None))
    return value if isinstance(value, date) else None


def times_of(component: Component, name: str) -> list[Time]:
    """All of a property that is a list of times and may itself be there several times."""
    entries = [entry for part in many(component, name) for entry in cast("list[object]", getattr(part, "dts", []))]
    return [value for entry in entries if isinstance(value := cast("object", getattr(entry, "dt", None)), date)]


def many(component: Component, name: str) -> list[object]:
    """A property, which may be there several times."""
    value = component.get(name)
    if value is None:
        return []
    return cast("list[object]", value) if isinstance(value, list) else [value]


def text_of(component: Component, name: str) -> str:
    values = many(component, name)
    return str(values[0]) if values else ""


def line_of(value: object) -> str:
    """A property's value as it stands in a file."""
    return cast("Component", value).to_ical().decode()


def parameters_of(value: object) -> dict[str, object]:
    return cast("dict[str, object]", getattr(value, "params", {}))
