"""Where nothing is planned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from annabelle.servers.gmail.calendar.event import Event
from annabelle.servers.gmail.calendar.when import local, moment_of


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """From a moment until another. Kept in UTC, where every minute is there exactly once."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.start


def busy_slots(events: Iterable[Event], zone: ZoneInfo) -> list[Slot]:
    """What the events take, without overlaps. All-day events take the days as they are in the user's zone."""
    taken = sorted(slot for event in events if event.blocks and (slot := _slot(event, zone)).length > timedelta(0))
    merged: list[Slot] = []
    for slot in taken:
        if merged and slot.start <= merged[-1].end:
            merged[-1] = Slot(merged[-1].start, max(merged[-1].end, slot.end))
        else:
            merged.append(slot)
    return merged


def free_slots(asked: Iterable[Slot], busy: list[Slot], shortest: timedelta) -> list[Slot]:
    """What is left of the asked time, where at least so much is left."""
    free: list[Slot] = []
    for slot in asked:
        start = slot.start
        for taken in busy:
            if taken.end <= start:
                continue
            if taken.start >= slot.end:
                break
            free.append(Slot(start, taken.start))
            start = taken.end
        free.append(Slot(start, slot.end))
    return [slot for slot in free if slot.length >= shortest]


def hours_of_days(start: datetime, end: datetime, zone: ZoneInfo, first: time, last: time) -> list[Slot]:
    """These hours of every day in a time, as clocks in the zone show them. `last` before `first` is on the day
    after; the same hour twice is the whole day."""
    if first == last:
        return [Slot(start.astimezone(UTC), end.astimezone(UTC))]
    slots: list[Slot] = []
    day = start.astimezone(zone).date() - timedelta(days=1)
    while day <= end.astimezone(zone).date():
        opens = local(datetime.combine(day, first), zone).astimezone(UTC)
        closing = day + timedelta(days=1) if last <= first else day
        closes = local(datetime.combine(closing, last), zone).astimezone(UTC)
        slot = Slot(max(opens, start.astimezone(UTC)), min(closes, end.astimezone(UTC)))
        if slot.length > timedelta(0):
            slots.append(slot)
        day += timedelta(days=1)
    return slots


def _slot(event: Event, zone: ZoneInfo) -> Slot:
    return Slot(moment_of(event.span.start, zone), moment_of(event.span.end, zone))
