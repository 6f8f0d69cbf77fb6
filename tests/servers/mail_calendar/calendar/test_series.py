"""Events that repeat: over a change of clocks, with one that is different, with one that is left out."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.errors import NotFound
from servers.mail_calendar.calendar.worlds import MAIN, CalDavWorld, World
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-MAI")

SPRING = {"time_min": "2027-03-01", "time_max": "2027-04-30"}
WEEKLY = {
    "summary": "Choir",
    "start_date_time": "2027-03-17T19:00",
    "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=4"],
}
STARTS = [
    "2027-03-17T19:00:00+01:00",
    "2027-03-24T19:00:00+01:00",
    "2027-03-31T19:00:00+02:00",
    "2027-04-07T19:00:00+02:00",
]
FLOATING = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Somebody//EN
BEGIN:VEVENT
UID:floating
DTSTAMP:20261101T000000Z
DTSTART:20261203T090000
DURATION:PT30M
RRULE:FREQ=DAILY;COUNT=3
SUMMARY:Pills
END:VEVENT
END:VCALENDAR
"""


async def test_a_series_follows_the_clocks(call: CallTool, world: World) -> None:
    made = (await call("create_event", **WEEKLY)).event
    assert made.recurrence == ["RRULE:FREQ=WEEKLY;COUNT=4"]
    found = (await call("list_events", **SPRING)).events
    assert [one.start for one in found] == STARTS
    assert {one.series_id for one in found} == {made.id}
    assert len(world.stored()) == 1


async def test_a_series_of_another_zone_follows_the_clocks_there(call: CallTool, world: World) -> None:
    await call("create_event", **WEEKLY, time_zone="America/New_York")
    found = (await call("list_events", **SPRING)).events
    # Clocks change on 14 March in New York and on 28 March in Berlin.
    assert [one.start[11:16] for one in found] == ["00:00", "00:00", "01:00", "01:00"]


async def test_a_series_can_be_made_without_some_days(call: CallTool, world: World) -> None:
    await call("create_event", **{**WEEKLY, "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=4", "EXDATE:20270331"]})
    assert [one.start for one in (await call("list_events", **SPRING)).events] == [*STARTS[:2], STARTS[3]]
    days = ["RRULE:FREQ=DAILY;COUNT=3", "EXDATE:20270313"]
    await call("create_event", summary="Bin", start_date="2027-03-12", recurrence=days)
    found = await call("list_events", time_min="2027-03-12", time_max="2027-03-15")
    assert [one.start for one in found.events] == ["2027-03-12", "2027-03-14"]


async def test_one_of_a_series_is_changed_alone(call: CallTool, world: World) -> None:
    await call("create_event", **WEEKLY)
    third = (await call("list_events", **SPRING)).events[2]
    changed = (await call("update_event", event_id=third.id, start_date_time="2027-04-01T18:00", location="Dom")).event
    assert (changed.id, changed.start, changed.location) == (third.id, "2027-04-01T18:00:00+02:00", "Dom")
    found = (await call("list_events", **SPRING)).events
    assert [one.start for one in found] == [*STARTS[:2], "2027-04-01T18:00:00+02:00", STARTS[3]]
    assert [one.location for one in found] == [None, None, "Dom", None]
    again = (await call("get_event", event_id=third.id)).event
    assert (again.location, again.summary, again.series_id) == ("Dom", "Choir", third.series_id)
    twice = (await call("update_event", event_id=third.id, summary="Concert")).event
    assert (twice.summary, twice.location) == ("Concert", "Dom")
    assert len((await call("list_events", **SPRING)).events) == 4


async def test_one_of_a_series_is_deleted_alone(call: CallTool, world: World) -> None:
    await call("create_event", **WEEKLY)
    second = (await call("list_events", **SPRING)).events[1]
    await call("delete_event", event_id=second.id)
    found = (await call("list_events", **SPRING)).events
    assert [one.start for one in found] == [STARTS[0], *STARTS[2:]]
    with pytest.raises(NotFound):
        await call("get_event", event_id=second.id)


async def test_two_of_a_series_are_deleted_at_the_same_time(call: CallTool, world: World) -> None:
    await call("create_event", **WEEKLY)
    found = (await call("list_events", **SPRING)).events
    await asyncio.gather(*(call("delete_event", event_id=one.id) for one in found[:3]))
    assert [one.start for one in (await call("list_events", **SPRING)).events] == [STARTS[3]]


async def test_one_that_was_changed_can_still_be_deleted(call: CallTool, world: World) -> None:
    await call("create_event", **WEEKLY)
    second = (await call("list_events", **SPRING)).events[1]
    await call("update_event", event_id=second.id, start_date_time="2027-03-25T10:00")
    await call("delete_event", event_id=second.id)
    assert [one.start for one in (await call("list_events", **SPRING)).events] == [STARTS[0], *STARTS[2:]]


async def test_the_whole_series_is_changed_and_deleted_by_its_own_id(call: CallTool, world: World) -> None:
    made = (await call("create_event", **WEEKLY)).event
    await call("update_event", event_id=made.id, summary="Rehearsal")
    assert {one.summary for one in (await call("list_events", **SPRING)).events} == {"Rehearsal"}
    await call("delete_event", event_id=made.id)
    assert (await call("list_events", **SPRING)).events == []
    assert world.stored() == []


async def test_an_all_day_series_has_days_in_its_ids(call: CallTool, world: World) -> None:
    await call("create_event", summary="Bin", start_date="2027-03-26", recurrence=["FREQ=DAILY;UNTIL=20270329"])
    found = (await call("list_events", **SPRING)).events
    assert [one.start for one in found] == ["2027-03-26", "2027-03-27", "2027-03-28", "2027-03-29"]
    await call("delete_event", event_id=found[1].id)
    await call("update_event", event_id=found[2].id, summary="Glass")
    left = (await call("list_events", **SPRING)).events
    assert [(one.start, one.summary) for one in left] == [
        ("2027-03-26", "Bin"),
        ("2027-03-28", "Glass"),
        ("2027-03-29", "Bin"),
    ]


async def test_the_last_day_of_a_rule_is_included(call: CallTool, world: World) -> None:
    await call(
        "create_event",
        summary="Swim",
        start_date_time="2027-03-26T19:00",
        recurrence=["RRULE:FREQ=DAILY;UNTIL=20270328"],
    )
    found = (await call("list_events", **SPRING)).events
    assert [one.start[:10] for one in found] == ["2027-03-26", "2027-03-27", "2027-03-28"]


async def test_a_series_that_is_moved_takes_its_exceptions_along(call: CallTool, caldav: CalDavWorld) -> None:
    made = (await call("create_event", **WEEKLY)).event
    found = (await call("list_events", **SPRING)).events
    await call("update_event", event_id=found[1].id, location="Dom")
    await call("delete_event", event_id=found[2].id)
    await call("update_event", event_id=made.id, start_date_time="2027-03-18T20:30")
    moved = (await call("list_events", **SPRING)).events
    assert [(one.start, one.location) for one in moved] == [
        ("2027-03-18T20:30:00+01:00", None),
        ("2027-03-24T19:00:00+01:00", "Dom"),
        ("2027-04-08T20:30:00+02:00", None),
    ]


async def test_a_series_that_becomes_all_day_loses_them(call: CallTool, caldav: CalDavWorld) -> None:
    made = (await call("create_event", **WEEKLY)).event
    found = (await call("list_events", **SPRING)).events
    await call("update_event", event_id=found[1].id, location="Dom")
    await call("update_event", event_id=made.id, start_date="2027-03-18")
    moved = (await call("list_events", **SPRING)).events
    assert [(one.start, one.all_day, one.location) for one in moved][:2] == [
        ("2027-03-18", True, None),
        ("2027-03-25", True, None),
    ]


async def test_times_without_a_zone_are_meant_where_the_user_is(call: CallTool, caldav: CalDavWorld) -> None:
    caldav.server.put(MAIN, "floating.ics", FLOATING)
    found = (await call("list_events", time_min="2026-12-03", time_max="2026-12-05")).events
    assert (found[0].start, found[0].end) == ("2026-12-03T09:00:00+01:00", "2026-12-03T09:30:00+01:00")
    await call("update_event", event_id=found[1].id, summary="Other pills")
    await call("delete_event", event_id=found[2].id)
    left = (await call("list_events", time_min="2026-12-03", time_max="2026-12-05")).events
    assert [one.summary for one in left] == ["Pills", "Other pills"]


@pytest.mark.parametrize("instance", ["19990101T000000Z", "20270324", "99999999T999999Z", "20270324T180001Z"])
async def test_one_that_is_not_of_the_series_is_not_found(call: CallTool, caldav: CalDavWorld, instance: str) -> None:
    made = (await call("create_event", **WEEKLY)).event
    with pytest.raises(NotFound):
        await call("get_event", event_id=f"{made.id}#{instance}")
    with pytest.raises(NotFound):
        await call("delete_event", event_id=f"{made.id}#{instance}")
