"""The calendar tools of the server as a real process, at a real CalDAV server."""

from __future__ import annotations

import pytest

from servers.mail_calendar.calendar.worlds import CalDavWorld
from servers.speaking import Connect

GMAIL = ("-m", "annabelle.servers.mail_calendar")
CATALOGUE = {
    "list_calendars": (set(), set()),
    "list_events": (set(), {"calendar_id", "time_min", "time_max", "query", "max_results", "page_token"}),
    "get_event": ({"event_id"}, {"calendar_id"}),
    "create_event": (
        {"summary"},
        {"description", "location", "start_date_time", "start_date", "end_date_time", "end_date", "time_zone"}
        | {"attendees", "recurrence", "reminders", "calendar_id"},
    ),
    "update_event": (
        {"event_id"},
        {"summary", "description", "location", "start_date_time", "start_date", "end_date_time", "end_date"}
        | {"time_zone", "attendees", "response_status", "calendar_id"},
    ),
    "delete_event": ({"event_id"}, {"calendar_id"}),
    "quick_add_event": ({"text"}, {"calendar_id"}),
    "find_free_time": ({"time_min", "time_max"}, {"calendar_ids"}),
}


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_client_plans_a_day(as_process: Connect, caldav: CalDavWorld) -> None:
    async with as_process(*GMAIL, USER_TIMEZONE="Europe/Berlin") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, (required, optional) in CATALOGUE.items():
            schema = tools[name].input_schema
            assert set(schema.get("required", [])) == required, name
            assert optional <= schema["properties"].keys() - required, name
            assert all(value["description"] for value in schema["properties"].values()), name
            assert tools[name].annotations is not None
            assert tools[name].annotations.open_world_hint
        made = await client.call_tool("quick_add_event", {"text": "Dentist 2030-12-03 9am-10am at Main Street"})
        assert not made.is_error
        assert "Main Street" in caldav.stored()[0]
        event_id = made.structured_content["event"]["id"]
        day = {"time_min": "2030-12-03T08:00", "time_max": "2030-12-03T12:00"}
        free = await client.call_tool("find_free_time", day)
        assert free.content[0].text == "Tue 3 Dec 2030 08:00–09:00 (1 h)\nTue 3 Dec 2030 10:00–12:00 (2 h)"
        wrong = await client.call_tool("update_event", {"event_id": event_id, "end_date_time": "2030-12-02T09:00"})
        assert wrong.is_error
        assert wrong.structured_content["error"]["field"] == "end_date_time"
        await client.call_tool("delete_event", {"event_id": event_id})
        assert caldav.stored() == []
