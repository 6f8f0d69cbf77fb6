"""When nothing is planned: over several calendars, zones, midnight and changes of clocks."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings, strategies as st

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.servers.mail_calendar.calendar.event import CalendarEvent, EventSpan
from annabelle.servers.mail_calendar.calendar.free_time_tool import (
    TimeSlot,
    daily_hours,
    find_busy_slots,
    find_free_slots,
)
from servers.mail_calendar.calendar.worlds import MAIN, CalDavWorld, GoogleWorld, World
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-MAI")

BERLIN = ZoneInfo("Europe/Berlin")
ODD_ONES = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Somebody//EN
BEGIN:VEVENT
UID:{uid}
DTSTAMP:20261101T000000Z
DTSTART:20261203T090000Z
DTEND:20261203T100000Z
SUMMARY:Does not count
{line}
END:VEVENT
END:VCALENDAR
"""


def slots(found: object) -> list[tuple[str, str]]:
    return [(slot.start[5:16], slot.end[5:16]) for slot in found.free]  # type: ignore[attr-defined]


async def test_free_time_is_what_no_calendar_takes(call: CallTool, world: World) -> None:
    world.add_calendar("family", "Family")
    await call("create_event", summary="Talk", start_date_time="2026-12-03T10:00")
    await call("create_event", summary="Longer", start_date_time="2026-12-03T10:30", end_date_time="2026-12-03T12:00")
    await call("create_event", summary="Zoo", start_date_time="2026-12-03T14:00", calendar_id="family")
    day = {"time_min": "2026-12-03T09:00", "time_max": "2026-12-03T17:00"}
    found = await call("find_free_time", **day)
    assert slots(found) == [
        ("12-03T09:00", "12-03T10:00"),
        ("12-03T12:00", "12-03T14:00"),
        ("12-03T15:00", "12-03T17:00"),
    ]
    assert found.free[1].minutes == 120
    assert len(found.calendars) == 2
    alone = await call("find_free_time", **day, calendar_ids=["family"])
    assert slots(alone) == [("12-03T09:00", "12-03T14:00"), ("12-03T15:00", "12-03T17:00")]


async def test_short_gaps_are_not_free_time(call: CallTool, world: World) -> None:
    await call("create_event", summary="A", start_date_time="2026-12-03T09:00", end_date_time="2026-12-03T09:50")
    await call("create_event", summary="B", start_date_time="2026-12-03T10:00", end_date_time="2026-12-03T10:45")
    day = {"time_min": "2026-12-03T09:00", "time_max": "2026-12-03T11:00"}
    assert slots(await call("find_free_time", **day)) == [("12-03T10:45", "12-03T11:00")]
    assert slots(await call("find_free_time", **day, duration_minutes=30)) == []
    with pytest.raises(InvalidArguments):
        await call("find_free_time", **day, duration_minutes=5)


async def test_a_whole_day_is_taken_as_it_is_where_the_user_is(call: CallTool, world: World) -> None:
    await call("create_event", summary="Day off", start_date="2026-12-03")
    found = await call("find_free_time", time_min="2026-12-02T22:00", time_max="2026-12-04T02:00")
    assert slots(found) == [("12-02T22:00", "12-03T00:00"), ("12-04T00:00", "12-04T02:00")]


async def test_events_over_midnight_and_of_other_zones_count(call: CallTool, world: World) -> None:
    await call(
        "create_event",
        summary="Night flight",
        start_date_time="2026-12-03T20:00",
        end_date_time="2026-12-04T01:00",
        time_zone="America/New_York",
    )
    found = await call("find_free_time", time_min="2026-12-03T22:00", time_max="2026-12-04T10:00")
    assert slots(found) == [("12-03T22:00", "12-04T02:00"), ("12-04T07:00", "12-04T10:00")]
    there = await call(
        "find_free_time", time_min="2026-12-03T16:00", time_max="2026-12-04T04:00", time_zone="America/New_York"
    )
    assert slots(there) == [("12-03T16:00", "12-03T20:00"), ("12-04T01:00", "12-04T04:00")]


async def test_each_of_a_series_counts(call: CallTool, world: World) -> None:
    await call(
        "create_event", summary="Choir", start_date_time="2026-12-01T19:00", recurrence=["RRULE:FREQ=DAILY;COUNT=5"]
    )
    found = await call(
        "find_free_time", time_min="2026-12-02", time_max="2026-12-03", day_start="18:00", day_end="21:00"
    )
    assert slots(found) == [
        ("12-02T18:00", "12-02T19:00"),
        ("12-02T20:00", "12-02T21:00"),
        ("12-03T18:00", "12-03T19:00"),
        ("12-03T20:00", "12-03T21:00"),
    ]


@pytest.mark.parametrize(
    "line",
    ["TRANSP:TRANSPARENT", "STATUS:CANCELLED", "ATTENDEE;PARTSTAT=DECLINED:mailto:ada@example.com"],
)
async def test_what_does_not_take_time_does_not_count(call: CallTool, caldav: CalDavWorld, line: str) -> None:
    caldav.server.put(MAIN, "odd.ics", ODD_ONES.format(uid="odd", line=line))
    found = await call("find_free_time", time_min="2026-12-03T09:00", time_max="2026-12-03T17:00")
    assert slots(found) == [("12-03T09:00", "12-03T17:00")]


async def test_what_does_not_take_time_at_google_does_not_count(call: CallTool, google: GoogleWorld) -> None:
    edges = {"start": {"dateTime": "2026-12-03T10:00:00+01:00"}, "end": {"dateTime": "2026-12-03T11:00:00+01:00"}}
    google.part.put({"id": "one", **edges, "transparency": "transparent"})
    google.part.put({"id": "two", **edges, "status": "cancelled"})
    google.part.put({"id": "three", **edges, "attendees": [{"email": "ada@example.com", "responseStatus": "declined"}]})
    google.part.make_calendar("holidays", "Holidays", role="reader")
    google.part.put({"id": "four", **edges}, "holidays")
    found = await call("find_free_time", time_min="2026-12-03T09:00", time_max="2026-12-03T17:00")
    assert slots(found) == [("12-03T09:00", "12-03T17:00")]
    google.part.put({"id": "five", **edges})
    found = await call("find_free_time", time_min="2026-12-03T09:00", time_max="2026-12-03T17:00")
    assert slots(found) == [("12-03T09:00", "12-03T10:00"), ("12-03T11:00", "12-03T17:00")]


async def test_a_calendar_that_is_not_there_is_not_taken_for_free(call: CallTool, world: World) -> None:
    with pytest.raises(NotFound):
        await call("find_free_time", time_min="2026-12-03", time_max="2026-12-03", calendar_ids=["nobody"])


@pytest.mark.parametrize(
    ("time_min", "time_max"),
    [("2026-12-03", "2026-12-02"), ("2026-12-03T10:00", "2026-12-03T10:00"), ("2026-01-01", "2026-12-31")],
)
async def test_a_time_that_is_none_or_too_long_is_refused(
    call: CallTool, caldav: CalDavWorld, time_min: str, time_max: str
) -> None:
    with pytest.raises(InvalidArguments):
        await call("find_free_time", time_min=time_min, time_max=time_max)


def test_the_day_on_which_clocks_change_has_its_real_length() -> None:
    spring = datetime(2027, 3, 28, tzinfo=BERLIN)
    hours = daily_hours(spring, datetime(2027, 3, 29, tzinfo=BERLIN), BERLIN, time(0), time(0))
    assert [slot.length for slot in hours] == [timedelta(hours=23)]
    night = daily_hours(spring, datetime(2027, 3, 29, tzinfo=BERLIN), BERLIN, time(1), time(4))
    assert [slot.length for slot in night] == [timedelta(hours=2)]


def test_hours_over_midnight_belong_to_the_evening_they_begin_on() -> None:
    start, end = datetime(2026, 12, 3, tzinfo=BERLIN), datetime(2026, 12, 4, tzinfo=BERLIN)
    found = daily_hours(start, end, BERLIN, time(22), time(2))
    assert [(slot.start.astimezone(BERLIN).hour, slot.length) for slot in found] == [
        (0, timedelta(hours=2)),
        (22, timedelta(hours=2)),
    ]


MOMENTS = st.datetimes(datetime(2027, 3, 26), datetime(2027, 3, 30)).map(lambda moment: moment.replace(tzinfo=UTC))
EVENTS = st.lists(st.tuples(MOMENTS, st.timedeltas(timedelta(0), timedelta(hours=9))), max_size=12)


NOON = datetime(2027, 3, 27, 12, tzinfo=UTC)


@settings(deadline=None)
@example([(NOON, timedelta(hours=6)), (NOON + timedelta(hours=1), timedelta(hours=1))], "UTC")  # one within the other
@given(EVENTS, st.sampled_from(["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "UTC"]))
def test_every_minute_is_either_taken_or_free(events: list[tuple[datetime, timedelta]], name: str) -> None:
    zone = ZoneInfo(name)
    planned = [
        CalendarEvent("x", "y", "z", EventSpan(start.astimezone(zone), (start + length).astimezone(zone)))
        for start, length in events
    ]
    whole = TimeSlot(datetime(2027, 3, 26, tzinfo=UTC), datetime(2027, 3, 31, tzinfo=UTC))
    busy = find_busy_slots(planned, zone)
    free = find_free_slots([whole], busy, timedelta(microseconds=1))
    every = sorted([*busy, *free])
    assert (every[0].start, every[-1].end) == (whole.start, whole.end)
    assert all(before.end == after.start for before, after in itertools.pairwise(every))
    taken = [TimeSlot(start, start + length) for start, length in events if length > timedelta(0)]
    assert all(any(slot.start <= one.start and one.end <= slot.end for slot in busy) for one in taken)
