"""The eight tools, each at Google and at a CalDAV server."""

from __future__ import annotations

import asyncio
import json

import pytest

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.call import Call, enter_call
from servers.mail_calendar.calendar.worlds import World
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-MAI", "SRV-ALL")


async def test_calendars_are_listed_and_one_is_the_main_one(call: CallTool, world: World) -> None:
    world.add_calendar("family", "Famille & Kinder ✨")
    found = (await call("list_calendars")).calendars
    assert len((await call("list_events", calendar_id="", page_token="")).events) == 0
    assert {one.name for one in found} == {"Ada", "Famille & Kinder ✨"}
    assert [one.name for one in found if one.primary] == ["Ada"]
    assert all(one.own for one in found)


async def test_a_created_event_is_on_the_server_and_comes_back_whole(call: CallTool, world: World) -> None:
    made = await call(
        "create_event",
        summary="Zahnarzt 🦷",
        description="Röntgenbild mitbringen;\nund, ja: die Karte\\",
        location="Praxis Müller",
        start_date_time="2026-12-03T09:30",
        end_date_time="2026-12-03T10:15",
        attendees=["bob@example.com"],
        reminders=[{"method": "popup", "minutes": 15}, {"method": "email", "minutes": 60}],
    )
    assert made.outcome == "created"
    assert "Zahnarzt 🦷" in world.stored()[0]
    assert "bob@example.com" in world.stored()[0]
    event = (await call("get_event", event_id=made.event.id)).event
    assert (event.start, event.end) == ("2026-12-03T09:30:00+01:00", "2026-12-03T10:15:00+01:00")
    assert event.description == "Röntgenbild mitbringen;\nund, ja: die Karte\\"
    assert (event.location, event.all_day) == ("Praxis Müller", False)
    assert [one.email for one in event.attendees] == ["bob@example.com"]
    assert {(one.method, one.minutes) for one in event.reminders} == {("popup", 15), ("email", 60)}


async def test_an_all_day_event_has_its_last_day_included(call: CallTool, world: World) -> None:
    made = (await call("create_event", summary="Fair", start_date="2026-12-03", end_date="2026-12-05")).event
    assert (made.start, made.end, made.all_day) == ("2026-12-03", "2026-12-05", True)
    assert "20261206" in world.stored()[0].replace("-", "")
    one = (await call("create_event", summary="Day off", start_date="2026-12-24")).event
    assert (one.start, one.end) == ("2026-12-24", "2026-12-24")


async def test_a_time_is_in_its_own_zone_and_shown_in_the_users(call: CallTool, world: World) -> None:
    made = await call("create_event", summary="Call", start_date_time="2026-12-03T09:00", time_zone="America/New_York")
    assert (made.event.start, made.event.end) == ("2026-12-03T15:00:00+01:00", "2026-12-03T16:00:00+01:00")
    assert made.event.time_zone == "America/New_York"
    offset = await call("create_event", summary="Other", start_date_time="2026-12-03T09:00:00Z")
    assert offset.event.start == "2026-12-03T10:00:00+01:00"


async def test_events_are_listed_by_their_start_in_pages(call: CallTool, world: World) -> None:
    for hour in (14, 9, 11):
        await call("create_event", summary=f"At {hour}", start_date_time=f"2026-11-20T{hour:02}:00")
    await call("create_event", summary="Next year", start_date_time="2027-11-20T09:00")
    first = await call("list_events", max_results=2)
    assert [one.summary for one in first.events] == ["At 9", "At 11"]
    second = await call("list_events", max_results=2, page_token=first.next_page_token)
    assert [one.summary for one in second.events] == ["At 14"]
    assert second.next_page_token is None
    assert first.time_max == "2026-12-16T09:00:00+01:00"


async def test_a_date_alone_asks_for_the_whole_day(call: CallTool, world: World) -> None:
    for start in ("2026-11-19T23:30", "2026-11-20T00:00", "2026-11-20T23:30", "2026-11-21T00:00"):
        await call("create_event", summary=start, start_date_time=start, end_date_time=start[:-1] + "9")
    await call("create_event", summary="all day", start_date="2026-11-20")
    found = await call("list_events", time_min="2026-11-20", time_max="2026-11-20")
    assert {one.summary for one in found.events} == {"2026-11-20T00:00", "2026-11-20T23:30", "all day"}


async def test_events_are_found_by_words(call: CallTool, world: World) -> None:
    await call("create_event", summary="Zahnarzt", location="Köln", start_date="2026-11-20")
    await call("create_event", summary="Lunch", description="with Zoë", start_date="2026-11-20")
    assert [one.summary for one in (await call("list_events", query="köln zahnarzt")).events] == ["Zahnarzt"]
    assert [one.summary for one in (await call("list_events", query="zoë")).events] == ["Lunch"]
    assert (await call("list_events", query="nothing like it")).events == []


async def test_an_update_changes_what_is_named_and_nothing_else(call: CallTool, world: World) -> None:
    event_id = world.invite()
    changed = (await call("update_event", event_id=event_id, location="Room 4")).event
    assert (changed.summary, changed.location) == ("Board", "Room 4")
    assert changed.start == "2026-12-03T09:00:00+01:00"
    assert [one.response for one in changed.attendees] == ["needsAction", "accepted"]
    assert "Room 4" in world.stored()[0]
    if world.name == "caldav":
        assert "X-OTHER:keep me" in world.stored()[0]


async def test_a_new_start_keeps_the_length_and_a_new_end_the_start(call: CallTool, world: World) -> None:
    made = await call(
        "create_event", summary="Talk", start_date_time="2026-12-03T09:00", end_date_time="2026-12-03T09:45"
    )
    moved = (await call("update_event", event_id=made.event.id, start_date_time="2026-12-04T14:00")).event
    assert (moved.start, moved.end) == ("2026-12-04T14:00:00+01:00", "2026-12-04T14:45:00+01:00")
    longer = (await call("update_event", event_id=made.event.id, end_date_time="2026-12-04T16:00")).event
    assert (longer.start, longer.end) == ("2026-12-04T14:00:00+01:00", "2026-12-04T16:00:00+01:00")
    whole = (await call("update_event", event_id=made.event.id, start_date="2026-12-05")).event
    assert (whole.start, whole.end, whole.all_day) == ("2026-12-05", "2026-12-05", True)


async def test_a_text_can_be_taken_away(call: CallTool, world: World) -> None:
    made = await call("create_event", summary="Talk", location="Room 1", description="x", start_date="2026-12-03")
    changed = (await call("update_event", event_id=made.event.id, location="", description="")).event
    assert (changed.location, changed.description) == (None, None)
    assert "Room 1" not in world.stored()[0]


async def test_the_user_answers_an_invitation(call: CallTool, world: World) -> None:
    event_id = world.invite()
    answered = (await call("update_event", event_id=event_id, response_status="accepted")).event
    assert {one.email: one.response for one in answered.attendees} == {
        "ada@example.com": "accepted",
        "bob@example.com": "accepted",
    }
    assert next(one.me for one in answered.attendees if one.email == "ada@example.com")
    assert world.stored()[0].lower().count("accepted") == 2
    assert "keep me" in world.stored()[0]
    assert "SEQUENCE" not in world.stored()[0]


async def test_who_is_not_invited_has_nothing_to_answer(call: CallTool, world: World) -> None:
    made = await call("create_event", summary="Mine", start_date="2026-12-03")
    with pytest.raises(InvalidArguments, match="not invited"):
        await call("update_event", event_id=made.event.id, response_status="declined")


async def test_attendees_are_replaced_and_those_who_stay_keep_their_answer(call: CallTool, world: World) -> None:
    event_id = world.invite()
    changed = await call("update_event", event_id=event_id, attendees=["bob@example.com", "eve@example.com"])
    answers = {one.email: one.response for one in changed.event.attendees}
    assert answers == {"bob@example.com": "accepted", "eve@example.com": "needsAction"}


async def test_a_deleted_event_is_gone(call: CallTool, world: World) -> None:
    made = await call("create_event", summary="Old", start_date="2026-12-03")
    await call("delete_event", event_id=made.event.id)
    assert world.stored() == []
    with pytest.raises(NotFound):
        await call("get_event", event_id=made.event.id)
    assert (await call("list_events")).events == []


async def test_another_calendar_is_used_when_it_is_named(call: CallTool, world: World) -> None:
    world.add_calendar("family", "Family")
    made = await call("create_event", summary="Zoo", start_date="2026-12-03", calendar_id="family")
    assert (len(world.stored("family")), world.stored()) == (1, [])
    assert (await call("list_events")).events == []
    assert [one.summary for one in (await call("list_events", calendar_id="family")).events] == ["Zoo"]
    await call("update_event", event_id=made.event.id, calendar_id="family", summary="Circus")
    assert "Circus" in world.stored("family")[0]
    await call("delete_event", event_id=made.event.id, calendar_id="family")
    assert world.stored("family") == []


async def test_a_sentence_becomes_an_event(call: CallTool, world: World) -> None:
    made = (await call("quick_add_event", text="Lunch with Ana tomorrow at 12:30 at Cafe Luna")).event
    assert (made.summary, made.location) == ("Lunch with Ana", "Cafe Luna")
    assert (made.start, made.end) == ("2026-11-17T12:30:00+01:00", "2026-11-17T13:30:00+01:00")
    assert "Cafe Luna" in world.stored()[0]
    with pytest.raises(InvalidArguments, match="when"):
        await call("quick_add_event", text="Lunch with Ana")
    assert len(world.stored()) == 1


async def test_a_repeated_create_has_no_second_effect(call: CallTool, world: World) -> None:
    event = {"summary": "Talk", "start_date_time": "2026-12-03T09:00", "attendees": ["bob@example.com"]}
    first = await call("create_event", **event)
    again = await call("create_event", **event)
    assert (first.outcome, again.outcome, again.event.id) == ("created", "unchanged", first.event.id)
    assert len(world.stored()) == 1
    # One that was changed since is not the one asked for, and one that was deleted is wanted again.
    await call("update_event", event_id=first.event.id, start_date_time="2026-12-04T09:00")
    third = await call("create_event", **event)
    await call("delete_event", event_id=third.event.id)
    await call("create_event", **event)
    assert len(world.stored()) == 2


async def test_a_call_repeated_after_a_crash_finds_its_event_even_if_it_was_changed(
    call: CallTool, world: World
) -> None:
    event = {"summary": "Talk", "start_date_time": "2026-12-03T09:00"}
    enter_call(Call(call_id="call-1", user_id="ada"))
    first = await call("create_event", **event)
    world.meddle(first.event.id, "Room 1")
    again = await call("create_event", **event)
    assert (again.outcome, again.event.id, len(world.stored())) == ("unchanged", first.event.id, 1)
    enter_call(Call(call_id="call-2", user_id="ada"))
    assert (await call("create_event", **event)).outcome == "created"
    assert len(world.stored()) == 2


async def test_the_same_create_at_the_same_time_makes_one_event(call: CallTool, world: World) -> None:
    made = await asyncio.gather(*(call("create_event", summary="Talk", start_date="2026-12-03") for _ in range(4)))
    assert sorted(one.outcome for one in made) == ["created", "unchanged", "unchanged", "unchanged"]
    assert len(world.stored()) == 1


async def test_changes_at_the_same_time_are_all_kept(call: CallTool, world: World) -> None:
    made = (await call("create_event", summary="Talk", start_date="2026-12-03")).event
    await asyncio.gather(
        call("update_event", event_id=made.id, location="Room 1"),
        call("update_event", event_id=made.id, description="Bring cake"),
    )
    event = (await call("get_event", event_id=made.id)).event
    assert (event.location, event.description) == ("Room 1", "Bring cake")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "start_date_time"),
        ({"start_date_time": "tomorrow"}, "start_date_time"),
        ({"start_date_time": "2026-12-03"}, "start_date_time"),
        ({"start_date_time": "2026-12-03T25:00"}, "start_date_time"),
        ({"start_date_time": "0001-01-01T00:00:00+14:00"}, "start_date_time"),
        ({"start_date": "2026-02-30"}, "start_date"),
        ({"start_date": "2026-12-03", "start_date_time": "2026-12-03T09:00"}, "start_date"),
        ({"start_date": "2026-12-03", "end_date": "2026-12-02"}, "end_date"),
        ({"start_date": "2026-12-03", "end_date_time": "2026-12-03T09:00"}, "end_date_time"),
        ({"start_date_time": "2026-12-03T09:00", "end_date_time": "2026-12-03T08:59"}, "end_date_time"),
        ({"start_date_time": "2026-12-03T09:00", "time_zone": "Mars/Olympus"}, "time_zone"),
        ({"start_date_time": "2026-12-03T09:00", "time_zone": "../../etc/passwd"}, "time_zone"),
        ({"start_date": "2026-12-03", "attendees": ["bob"]}, "attendees.0"),
        ({"start_date": "2026-12-03", "attendees": ["a@b.c\r\nX: y"]}, "attendees.0"),
        ({"start_date": "2026-12-03", "recurrence": ["RRULE:FREQ=OFTEN"]}, "recurrence"),
        ({"start_date": "2026-12-03", "recurrence": ["RRULE:FREQ=SECONDLY"]}, "recurrence"),
        ({"start_date": "2026-12-03", "recurrence": ["DTSTART:20261203"]}, "recurrence"),
        ({"start_date": "2026-12-03", "recurrence": ["RRULE:FREQ=DAILY;INTERVAL=0"]}, "recurrence"),
        ({"start_date": "2026-12-03", "recurrence": ["RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"]}, "recurrence"),
        ({"start_date": "2026-12-03", "recurrence": ["EXDATE:99999999"]}, "recurrence"),
        ({"start_date": "2026-12-03", "reminders": [{"method": "popup", "minutes": -1}]}, "reminders.0.minutes"),
        ({"start_date": "2026-12-03", "description": "bell \x07"}, "description"),
        ({"start_date": "2026-12-03", "description": "x" * 50_001}, "description"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_what_is_wrong_is_named_before_anything_happens(
    call: CallTool, caldav: World, arguments: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidArguments) as refused:
        await call("create_event", summary="Talk", **arguments)
    assert refused.value.field == field
    assert caldav.stored() == []


async def test_an_update_without_anything_new_is_refused(call: CallTool, world: World) -> None:
    with pytest.raises(InvalidArguments, match="Nothing"):
        await call("update_event", event_id=world.invite())


def test_deleting_and_changing_are_destructive_and_looking_is_not(calendar_server: ToolServer) -> None:
    reading = {"list_calendars", "list_events", "get_event", "find_free_time"}
    assert {name for name, tool in calendar_server.tools.items() if tool.annotations.read_only} == reading
    destructive = {name for name, tool in calendar_server.tools.items() if tool.annotations.destructive}
    assert destructive == {"update_event", "delete_event"}
    writing = {"create_event", "quick_add_event"} | destructive
    assert set(calendar_server.tools) == reading | writing
    assert json.dumps([tool.input_schema() for tool in calendar_server.tools.values()])
