"""One resource of a CalDAV calendar: an event, or a series with the days on which it is different."""

from __future__ import annotations

import re
import urllib.parse
from datetime import UTC, date, datetime, timedelta
from typing import cast

from annabelle.servers.gmail.calendar.caldav.component import (
    Component,
    many,
    new_calendar,
    read_calendar,
    time_of,
    times_of,
    unroll,
)
from annabelle.servers.gmail.calendar.caldav.vevent import Reader, change_event, new_event, read_event, span_of
from annabelle.servers.gmail.calendar.event import Event, Span, Time
from annabelle.servers.gmail.calendar.recurrence import Rule, tame
from annabelle.servers.gmail.calendar.service import Change, Draft, gone
from annabelle.servers.gmail.calendar.when import local

_INSTANCE = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?")
_NAME = re.compile(r"(?!\.{1,2}$)[^/\\\x00-\x1f\x7f]+")
_ID = re.compile(r"([^#/\x00-\x20]{1,500}?)(?:#([\dTZ]{8,16}))?")


def split_id(event_id: str) -> tuple[str, str | None]:
    """The resource's name, and which of the series is meant; None is the whole."""
    match = _ID.fullmatch(event_id)
    # A name that a server could read as a way elsewhere is none: "." would be the calendar itself.
    if match is None or not _NAME.fullmatch(urllib.parse.unquote(match[1])):
        raise gone()
    return match[1], match[2]


def new_resource(draft: Draft, me: str) -> bytes:
    """The calendar data of an event that is to be."""
    calendar = new_calendar()
    calendar.add_component(new_event(draft, draft.key, me))
    calendar.add_missing_timezones()
    return calendar.to_ical()


class Resource:
    """Reads and changes the calendar data of one resource. Raises one of UNREADABLE on data that is none."""

    def __init__(self, calendar_id: str, name: str, version: str, data: bytes | str, reader: Reader) -> None:
        self._calendar_id, self._name, self._version, self._reader = calendar_id, name, version, reader
        self._calendar = read_calendar(data)
        events = [event for event in self._calendar.walk("VEVENT") if "DTSTART" in event]
        if not events:
            raise ValueError("no event in it")
        self._main = next((event for event in events if "RECURRENCE-ID" not in event), None)
        self._repeats = self._main is None or any(name in self._main for name in ("RRULE", "RDATE"))
        if not all(tame(cast("Rule", rule)) for event in events for rule in many(event, "RRULE")):
            raise ValueError("a rule that can not be unrolled")

    @property
    def version(self) -> str:
        return self._version

    @property
    def unchanged(self) -> dict[str, str]:
        """The condition that nobody has changed it since it was read; a server without versions is trusted."""
        return {"If-Match": self._version.removeprefix("W/")} if self._version else {}

    def data(self) -> bytes:
        self._calendar.add_missing_timezones()
        return self._calendar.to_ical()

    def between(self, start: datetime, end: datetime) -> list[Event]:
        """What takes place then, one by one."""
        found = unroll(self._calendar, start.astimezone(UTC), end.astimezone(UTC))
        return [self._event(component) for component in found]

    def event(self, instance: str | None) -> Event:
        if instance is None:
            if self._main is None:
                raise gone()
            return read_event(self._main, self._reader, **self._ids(None))
        return self._event(self._find(instance))

    def change(self, instance: str | None, change: Change, me: str) -> None:
        if instance is None:
            if self._main is None:
                raise gone()
            before = span_of(self._main, self._reader.zone)
            if change.span is not None and self._repeats:
                self._move_exceptions(before, change.span)
            change_event(self._main, change, self._reader, me)
            return
        component = self._find(instance)
        if component not in self._overrides():
            self._calendar.add_component(component)
        change_event(component, change, self._reader, me)

    def exclude(self, instance: str) -> None:
        """Take one out of the series."""
        component = self._find(instance)
        when = time_of(component, "RECURRENCE-ID")
        self._calendar.subcomponents = [part for part in self._calendar.subcomponents if _instance_of(part) != instance]
        if self._main is not None:
            self._main.add("EXDATE", when)

    @property
    def empty(self) -> bool:
        """Whether nothing of the event is left."""
        return not self._calendar.walk("VEVENT")

    def _event(self, component: Component) -> Event:
        return read_event(component, self._reader, **self._ids(_instance_of(component) if self._repeats else None))

    def _ids(self, instance: str | None) -> dict[str, str | None]:
        ids: dict[str, str | None] = {"calendar_id": self._calendar_id, "version": self._version}
        if instance is None:
            return {**ids, "id": self._name}
        return {**ids, "id": f"{self._name}#{instance}", "series_id": self._name}

    def _overrides(self) -> list[Component]:
        return [event for event in self._calendar.walk("VEVENT") if "RECURRENCE-ID" in event]

    def _find(self, instance: str) -> Component:
        """The component of one of the series: its own if it has one, otherwise the one the rule makes."""
        for event in self._overrides():
            if _instance_of(event) == instance:
                return event
        start = self._read_instance(instance)
        for event in unroll(self._calendar, start - timedelta(days=1), start + timedelta(days=2)):
            if self._repeats and _instance_of(event) == instance:
                return event
        raise gone()

    def _read_instance(self, instance: str) -> datetime:
        match = _INSTANCE.fullmatch(instance)
        try:
            if match is None:
                raise gone()
            given = datetime.strptime(f"{match[1]}{match[2] or '000000'}", "%Y%m%d%H%M%S")
            return (given.replace(tzinfo=UTC) if match[3] else local(given, self._reader.zone)).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise gone() from error

    def _move_exceptions(self, before: Span, after: Span) -> None:
        """A series that is moved takes the days on which it is different along, by what clocks show. If it becomes
        all-day, or is no longer, they have nothing left to hold on to."""
        assert self._main is not None
        excluded = times_of(self._main, "EXDATE")
        self._main.pop("EXDATE", None)
        overrides = self._overrides()
        if before.all_day != after.all_day:
            self._calendar.subcomponents = [part for part in self._calendar.subcomponents if part not in overrides]
            return
        for when in excluded:
            self._main.add("EXDATE", _moved(when, before.start, after.start))
        for event in overrides:
            when = time_of(event, "RECURRENCE-ID")
            event.pop("RECURRENCE-ID")
            if when is not None:
                event.add("RECURRENCE-ID", _moved(when, before.start, after.start))


def _moved(when: Time, before: Time, after: Time) -> Time:
    if not (isinstance(when, datetime) and isinstance(before, datetime) and isinstance(after, datetime)):
        return when + (_day(after) - _day(before))
    clock = when.astimezone(before.tzinfo) if when.tzinfo is not None else when
    shift = after.replace(tzinfo=None) - before.replace(tzinfo=None)
    return (clock.replace(tzinfo=None) + shift).replace(tzinfo=after.tzinfo)


def _day(time: Time) -> date:
    return time.date() if isinstance(time, datetime) else time


def _instance_of(component: Component) -> str | None:
    """Which of the series a component is, as it stands in an id."""
    when = time_of(component, "RECURRENCE-ID")
    if isinstance(when, datetime):
        return f"{when.astimezone(UTC):%Y%m%dT%H%M%SZ}" if when.tzinfo else f"{when:%Y%m%dT%H%M%S}"
    return f"{when:%Y%m%d}" if when is not None else None
