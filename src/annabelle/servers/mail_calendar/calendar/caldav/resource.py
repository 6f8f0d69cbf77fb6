"""One CalDAV resource: an event, or a series with its exceptions."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import cast

from annabelle.servers.mail_calendar.calendar.caldav.icalendar_event import (
    CalendarOwner,
    ICalComponent,
    change_event,
    expand_recurrences,
    get_time,
    get_values,
    new_calendar,
    new_event,
    read_calendar,
    read_event,
    read_span_of,
)
from annabelle.servers.mail_calendar.calendar.event import (
    CalendarEvent,
    DayOrTime,
    EventChange,
    EventDraft,
    EventSpan,
    event_not_found,
)
from annabelle.servers.mail_calendar.calendar.recurrence import Rule, is_cheap_to_expand
from annabelle.servers.mail_calendar.calendar.times import to_zone

_INSTANCE = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?")
_NAME = re.compile(r"(?!\.{1,2}$)[^/\\\x00-\x1f\x7f]+")
_ID = re.compile(r"([^#/\x00-\x20]{1,500}?)(?:#([\dTZ]{8,16}))?")


def split_id(event_id: str) -> tuple[str, str | None]:
    """Return the resource's name and the occurrence, which is None for the whole series."""
    match = _ID.fullmatch(event_id)
    # A name must not be a relative path: "." would be the calendar itself.
    if match is None or not _NAME.fullmatch(urllib.parse.unquote(match[1])):
        raise event_not_found()
    return match[1], match[2]


def new_resource(draft: EventDraft, me: str) -> bytes:
    calendar = new_calendar()
    calendar.add_component(new_event(draft, draft.key, me))
    calendar.add_missing_timezones()
    return calendar.to_ical()


class CalendarResource:
    """Reads and changes the calendar data of one resource. Raises one of UNREADABLE on invalid data."""

    def __init__(self, calendar_id: str, name: str, version: str, data: bytes | str, reader: CalendarOwner) -> None:
        self._calendar_id, self._name, self._version, self._reader = calendar_id, name, version, reader
        self._calendar = read_calendar(data)
        events = [event for event in self._calendar.walk("VEVENT") if "DTSTART" in event]
        if not events:
            raise ValueError("no event in it")
        self._main = next((event for event in events if "RECURRENCE-ID" not in event), None)
        self._repeats = self._main is None or any(name in self._main for name in ("RRULE", "RDATE"))
        if not all(is_cheap_to_expand(cast("Rule", rule)) for event in events for rule in get_values(event, "RRULE")):
            raise ValueError("a rule that can not be unrolled")

    @property
    def version(self) -> str:
        return self._version

    @property
    def if_match_header(self) -> dict[str, str]:
        """Header that makes a change fail if the resource has changed. Empty if the server has no ETags."""
        return {"If-Match": self._version.removeprefix("W/")} if self._version else {}

    def to_bytes(self) -> bytes:
        self._calendar.add_missing_timezones()
        return self._calendar.to_ical()

    def expand_between(self, start: datetime, end: datetime) -> list[CalendarEvent]:
        found = expand_recurrences(self._calendar, start.astimezone(UTC), end.astimezone(UTC))
        return [self._event(one, _instance_of(one) if self._repeats else None) for one in found]

    def event(self, instance: str | None) -> CalendarEvent:
        if instance is None:
            return self._event(self._require_main(), None)
        return self._event(self._find_instance(instance), instance if self._repeats else None)

    def apply_change(self, instance: str | None, change: EventChange, me: str) -> None:
        if instance is None:
            main = self._require_main()
            if change.span is not None and self._repeats:
                self._move_exceptions(main, read_span_of(main, self._reader.zone), change.span)
            change_event(main, change, self._reader, me)
            return
        component = self._find_instance(instance)
        if component not in self._overrides():
            self._calendar.add_component(component)
        change_event(component, change, self._reader, me)

    def exclude(self, instance: str) -> None:
        component = self._find_instance(instance)
        when = get_time(component, "RECURRENCE-ID")
        self._calendar.subcomponents = [part for part in self._calendar.subcomponents if _instance_of(part) != instance]
        if self._main is not None:
            self._main.add("EXDATE", when)

    @property
    def empty(self) -> bool:
        return not self._calendar.walk("VEVENT")

    def _event(self, component: ICalComponent, instance: str | None) -> CalendarEvent:
        return replace(
            read_event(component, self._reader),
            id=self._name if instance is None else f"{self._name}#{instance}",
            series_id=None if instance is None else self._name,
            calendar_id=self._calendar_id,
            version=self._version,
        )

    def _require_main(self) -> ICalComponent:
        if self._main is None:
            raise event_not_found()
        return self._main

    def _overrides(self) -> list[ICalComponent]:
        return [event for event in self._calendar.walk("VEVENT") if "RECURRENCE-ID" in event]

    def _find_instance(self, instance: str) -> ICalComponent:
        """Component of one occurrence: its own override, or the expanded one."""
        for event in self._overrides():
            if _instance_of(event) == instance:
                return event
        start = self._read_instance(instance)
        for event in expand_recurrences(self._calendar, start - timedelta(days=1), start + timedelta(days=2)):
            if self._repeats and _instance_of(event) == instance:
                return event
        raise event_not_found()

    def _read_instance(self, instance: str) -> datetime:
        match = _INSTANCE.fullmatch(instance)
        try:
            if match is None:
                raise event_not_found()
            given = datetime.strptime(f"{match[1]}{match[2] or '000000'}", "%Y%m%d%H%M%S")
            return (given.replace(tzinfo=UTC) if match[3] else to_zone(given, self._reader.zone)).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise event_not_found() from error

    def _move_exceptions(self, main: ICalComponent, before: EventSpan, after: EventSpan) -> None:
        """Move the exceptions with the series, by wall clock time. Drop them if the series turns all-day or timed."""
        excluded = main.exdates
        main.pop("EXDATE", None)
        overrides = self._overrides()
        if before.all_day != after.all_day:
            self._calendar.subcomponents = [part for part in self._calendar.subcomponents if part not in overrides]
            return
        for when in excluded:
            main.add("EXDATE", _shift_time(when, before.start, after.start))
        for event in overrides:
            when = get_time(event, "RECURRENCE-ID")
            event.pop("RECURRENCE-ID")
            if when is not None:
                event.add("RECURRENCE-ID", _shift_time(when, before.start, after.start))


def _shift_time(when: DayOrTime, before: DayOrTime, after: DayOrTime) -> DayOrTime:
    if not (isinstance(when, datetime) and isinstance(before, datetime) and isinstance(after, datetime)):
        return when + (_to_day(after) - _to_day(before))
    clock = when.astimezone(before.tzinfo) if when.tzinfo is not None else when
    shift = after.replace(tzinfo=None) - before.replace(tzinfo=None)
    return (clock.replace(tzinfo=None) + shift).replace(tzinfo=after.tzinfo)


def _to_day(time: DayOrTime) -> date:
    return time.date() if isinstance(time, datetime) else time


def _instance_of(component: ICalComponent) -> str | None:
    """Occurrence of a component, as written in an id."""
    when = get_time(component, "RECURRENCE-ID")
    if isinstance(when, datetime):
        return f"{when.astimezone(UTC):%Y%m%dT%H%M%SZ}" if when.tzinfo else f"{when:%Y%m%dT%H%M%S}"
    return f"{when:%Y%m%d}" if when is not None else None
