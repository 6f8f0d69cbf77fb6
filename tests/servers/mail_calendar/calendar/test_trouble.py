"""Servers that are down, refuse, hurry or send nonsense."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.core.connections import remove_connection, write_connection
from annabelle.core.errors import (
    ConfigMistake,
    Conflict,
    InvalidArguments,
    NotFound,
    OutcomeUnknown,
    TooManyRequests,
    Unavailable,
)
from annabelle.core.home import Home
from annabelle.servers.kit import ToolServer
from annabelle.servers.mail_calendar.accounts import Accounts
from annabelle.servers.mail_calendar.calendar.caldav.client import DavClient, same_site
from annabelle.servers.mail_calendar.config import MailCalendarConfig
from annabelle.servers.mail_calendar.mail.invitation import read_invitation
from annabelle.servers.mail_calendar.server import calendar_groups
from servers.mail_calendar.calendar.odd_server import OddServer
from servers.mail_calendar.calendar.worlds import MAIN, CalDavWorld, GoogleWorld, World
from servers.speaking import CallTool
from support.caldav_server import PASSWORD, CalDavServer
from support.google_double.app import Fault
from support.timing import seconds

pytestmark = pytest.mark.req("SRV-MAI", "SRV-ALL")

PRIMARY = "/calendar/v3/calendars/primary/events"
GOOD = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:x
BEGIN:VEVENT
UID:good
DTSTAMP:20261101T000000Z
DTSTART:20261120T090000Z
DTEND:20261120T100000Z
SUMMARY:Good one
END:VEVENT
END:VCALENDAR"""

CLOCKS = """BEGIN:VTIMEZONE
TZID:Mad
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=SEC
 ONDLY
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
"""


async def test_without_an_account_the_tools_say_what_to_run(call: CallTool, home: Home) -> None:
    with pytest.raises(Unavailable, match="No calendar") as missing:
        await call("list_calendars")
    assert "annabelle connect google" in (missing.value.hint or "")


async def test_a_mailbox_without_a_calendar_says_so(call: CallTool, home: Home, radicale: CalDavServer) -> None:
    write_connection(home, "mail", radicale.account().model_copy(update={"caldav_url": None}))
    with pytest.raises(Unavailable, match="without a calendar"):
        await call("list_events")


async def test_an_account_connected_later_is_used_without_a_restart(
    call: CallTool, google: GoogleWorld, caldav: CalDavWorld, home: Home
) -> None:
    await call("create_event", summary="At Google", start_date="2026-12-03")
    remove_connection(home, "google")
    await call("create_event", summary="Elsewhere", start_date="2026-12-03")
    assert (len(google.stored()), len(caldav.stored())) == (1, 1)


async def test_a_wrong_password_is_named_and_never_shown(call: CallTool, home: Home, radicale: CalDavServer) -> None:
    write_connection(home, "mail", radicale.account("wrong-password-9"))
    with pytest.raises(Unavailable, match="does not accept") as refused:
        await call("list_calendars")
    assert "annabelle connect mail" in (refused.value.hint or "")
    assert "wrong-password-9" not in f"{refused.value!r} {refused.value.hint}"


async def test_a_server_that_is_down_is_said_to_be(call: CallTool, home: Home, radicale: CalDavServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    account = radicale.account()
    write_connection(home, "mail", account.model_copy(update={"caldav_url": f"http://127.0.0.1:{port}/"}))
    with pytest.raises(Unavailable, match="can not be reached"):
        await call("list_calendars")
    assert PASSWORD not in repr(account)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "nonsense", "http://[::bad/", "http:///x"])
async def test_an_address_that_is_none_is_a_sentence(
    call: CallTool, home: Home, radicale: CalDavServer, url: str
) -> None:
    write_connection(home, "mail", radicale.account().model_copy(update={"caldav_url": url}))
    with pytest.raises(Unavailable):
        await call("list_calendars")


async def test_calendars_are_found_from_the_servers_root(
    call: CallTool, caldav: CalDavWorld, home: Home, radicale: CalDavServer
) -> None:
    radicale.make_calendar("todo", "Tasks", kind="VTODO")
    write_connection(home, "mail", radicale.account())
    assert [one.name for one in (await call("list_calendars")).calendars] == ["Ada"]
    await call("create_event", summary="Found", start_date="2026-12-03")
    assert "Found" in caldav.stored()[0]


async def test_a_calendar_that_is_not_there_is_named_with_those_that_are(call: CallTool, world: World) -> None:
    with pytest.raises(NotFound) as missing:
        await call("list_events", calendar_id="nobody")
    if world.name == "caldav":
        assert MAIN in (missing.value.hint or "")
    with pytest.raises(NotFound):
        await call("create_event", summary="x", start_date="2026-12-03", calendar_id="../../bob/main")


async def test_a_calendar_that_took_the_place_of_another_is_found(call: CallTool, caldav: CalDavWorld) -> None:
    await call("list_events")
    caldav.server.clear()
    caldav.server.make_calendar("new", "New")
    with pytest.raises(NotFound):
        await call("list_events")
    await call("create_event", summary="Moved", start_date="2026-12-03")
    assert len(caldav.stored("new")) == 1


@pytest.mark.parametrize("event_id", ["nothing", "..", "../main/x.ics", "a/b", "x#y", "%2e%2e", "%2F..%2F", "ü ∞", "#"])
async def test_an_event_that_is_not_there_is_not_found(call: CallTool, world: World, event_id: str) -> None:
    with pytest.raises(NotFound):
        await call("get_event", event_id=event_id)
    with pytest.raises(NotFound):
        await call("update_event", event_id=event_id, summary="x")
    with pytest.raises(NotFound):
        await call("delete_event", event_id=event_id)


async def test_a_calendar_itself_is_never_deleted_as_an_event(call: CallTool, caldav: CalDavWorld) -> None:
    await call("create_event", summary="Stays", start_date="2026-12-03")
    for event_id in (".", "..", "%2e", "%2E%2E", f"..%2F{MAIN}"):
        with pytest.raises(NotFound):
            await call("delete_event", event_id=event_id)
    assert len(caldav.stored()) == 1


async def test_a_page_token_of_somewhere_else_is_refused(call: CallTool, world: World) -> None:
    with pytest.raises(InvalidArguments):
        await call("list_events", page_token="not-a-token")


async def test_a_long_description_is_cut_and_kept_whole(call: CallTool, caldav: CalDavWorld, workspace: Path) -> None:
    long = "\n".join(f"{number}: größe ✓" for number in range(3_000))
    made = await call("create_event", summary="Long", start_date="2026-12-03", description=long)
    event = (await call("get_event", event_id=made.event.id)).event
    assert len(event.description) == 4_000
    assert (workspace / event.rest).read_text() == long
    assert len((await call("list_events")).events[0].description) < 250


async def test_what_google_does_not_accept_is_told_in_its_words(call: CallTool, google: GoogleWorld) -> None:
    with pytest.raises(InvalidArguments, match="too long"):
        await call("create_event", summary="Long", start_date="2026-12-03", description="x" * 9_000)
    assert google.stored() == []


async def test_a_change_in_between_is_kept_beside_ours(
    call: CallTool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody changes the event after it was read and before it is written."""
    event_id = world.invite()
    meddled: list[str] = []

    def meddle_once() -> None:
        if not meddled:
            meddled.append("done")
            world.meddle(event_id, "Room of the other")

    if isinstance(world, GoogleWorld):
        world.part.before_patch = meddle_once
    else:
        real = DavClient.put

        async def put(self: DavClient, url: str, data: bytes, condition: dict[str, str]) -> None:
            meddle_once()
            await real(self, url, data, condition)

        monkeypatch.setattr(DavClient, "put", put)
    changed = (await call("update_event", event_id=event_id, summary="Ours")).event
    assert (meddled, changed.summary, changed.location) == (["done"], "Ours", "Room of the other")


async def test_who_is_invited_to_google_in_between_stays_invited(call: CallTool, google: GoogleWorld) -> None:
    """The list of attendees is written as a whole: over one that has grown since it was read, one would be lost."""
    event_id = google.invite()

    def carol_joins() -> None:
        google.part.before_patch = None
        (event,) = google.part.live()
        google.part.put({**event, "attendees": [*event["attendees"], {"email": "carol@example.com"}]})

    google.part.before_patch = carol_joins
    await call("update_event", event_id=event_id, response_status="accepted")
    (event,) = google.part.live()
    assert {one["email"]: one["responseStatus"] for one in event["attendees"]} == {
        "ada@example.com": "accepted",
        "bob@example.com": "accepted",
        "carol@example.com": "needsAction",
    }


async def test_a_change_that_never_gets_through_is_a_conflict(call: CallTool, google: GoogleWorld) -> None:
    event_id = google.invite()
    google.double.app.faults.append(Fault("PATCH", PRIMARY, status=412, times=20))
    with pytest.raises(Conflict):
        await call("update_event", event_id=event_id, summary="Ours")


async def test_google_asking_for_patience_is_passed_on(call: CallTool, google: GoogleWorld) -> None:
    google.double.app.faults.append(Fault("GET", PRIMARY, status=429, headers={"Retry-After": "600"}))
    with pytest.raises(TooManyRequests) as busy:
        await call("list_events")
    assert busy.value.retry_after == 600


async def test_a_hiccup_of_google_is_passed_over(call: CallTool, google: GoogleWorld) -> None:
    google.double.app.faults.append(Fault("GET", PRIMARY, status=503, headers={"Retry-After": "0"}))
    assert (await call("list_events")).events == []


async def test_a_create_whose_answer_is_lost_makes_one_event(call: CallTool, google: GoogleWorld) -> None:
    google.double.app.faults.append(Fault("POST", PRIMARY, status=503, headers={"Retry-After": "0"}, done_first=True))
    made = await call("create_event", summary="Once", start_date="2026-12-03", attendees=["bob@example.com"])
    assert (made.event.summary, len(google.stored())) == ("Once", 1)
    assert len(google.part.notified) == 1


async def test_a_delete_whose_answer_is_lost_is_done(call: CallTool, google: GoogleWorld) -> None:
    event_id = google.invite()
    google.double.app.faults.append(Fault("DELETE", PRIMARY, status=503, headers={"Retry-After": "0"}, done_first=True))
    await call("delete_event", event_id=event_id)
    assert google.stored() == []


async def test_only_those_who_are_invited_are_written_to(call: CallTool, google: GoogleWorld) -> None:
    alone = (await call("create_event", summary="Alone", start_date="2026-12-03")).event
    await call("update_event", event_id=alone.id, summary="Still alone")
    assert google.part.notified == []
    await call("update_event", event_id=alone.id, attendees=["bob@example.com"])
    assert google.part.notified == [alone.id]


async def test_events_that_can_not_be_read_are_counted_and_the_others_shown(
    call: CallTool, home: Home, odd: OddServer
) -> None:
    odd.events = [
        GOOD,
        "",
        "not a calendar",
        GOOD.replace("DTSTART:20261120T090000Z", "DTSTART:yesterday"),
        GOOD.replace("DTSTART:20261120T090000Z\n", ""),
        GOOD.replace("DTEND:20261120T100000Z", "DTEND;VALUE=DATE:20261121"),
        GOOD.replace("SUMMARY", "RRULE:FREQ=SECONDLY\nSUMMARY"),
        GOOD.replace("SUMMARY", "RRULE:FREQ=DAILY;UNTIL=never\nSUMMARY"),
        GOOD.replace("SUMMARY", "RRULE:FREQ=DAILY;INTERVAL=0\nSUMMARY"),
        GOOD.replace("SUMMARY", "RRULE:FREQ=DAILY;INTERVAL=-1\nSUMMARY"),
        GOOD.replace("SUMMARY", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=1\nSUMMARY"),
        GOOD.replace("SUMMARY", "RRULE:FREQ=DAILY;BYSETPOS=5\nSUMMARY"),
        GOOD.replace("BEGIN:VEVENT", f"{CLOCKS}BEGIN:VEVENT", 1).replace("DTSTART:2026", "DTSTART;TZID=Mad:2026", 1),
        GOOD.replace("BEGIN:VEVENT", "BEGIN:VTODO").replace("END:VEVENT", "END:VTODO"),
        GOOD[:120],
    ]
    write_connection(home, "mail", odd.account())
    found = await call("list_events")
    assert "Good one" in {one.summary for one in found.events}
    assert found.unreadable >= 11
    free = await call("find_free_time", time_min="2026-12-01", time_max="2026-12-31")
    assert free.unreadable == found.unreadable
    with pytest.raises(Unavailable, match="can not be read"):
        await call("get_event", event_id="2.ics")
    with pytest.raises(Unavailable, match="can not be read"):
        await call("update_event", event_id="5.ics", summary="x")


def test_an_invitation_by_mail_can_not_keep_a_reader_busy() -> None:
    mad = GOOD.replace("BEGIN:VEVENT", f"{CLOCKS}BEGIN:VEVENT", 1).replace("DTSTART:2026", "DTSTART;TZID=Mad:2026", 1)
    assert read_invitation(mad.replace("\n", "\r\n").encode()) is None
    good = read_invitation(GOOD.replace("\n", "\r\n").encode())
    assert good is not None
    assert good.summary == "Good one"


async def test_nonsense_instead_of_an_answer_is_a_sentence(call: CallTool, home: Home, odd: OddServer) -> None:
    write_connection(home, "mail", odd.account())
    for nonsense in (
        b"",
        b"<html>Welcome",
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><d:multistatus xmlns:d="DAV:">&a;</d:multistatus>',
        b"\xff\xfe\x00",
        b'<d:multistatus xmlns:d="DAV:"/>',
    ):
        odd.instead = (207, {}, nonsense)
        with pytest.raises(Unavailable):
            await call("list_calendars")
    for status in (404, 405, 418, 500, 200):
        odd.instead = (status, {}, b"")
        with pytest.raises(Unavailable):
            await call("list_calendars")


async def test_a_password_does_not_follow_to_another_site(
    call: CallTool, home: Home, odd: OddServer, radicale: CalDavServer
) -> None:
    odd.instead = (302, {"Location": f"http://localhost:{radicale.port}/"}, b"")
    write_connection(home, "mail", odd.account())
    with pytest.raises(Unavailable, match="another site"):
        await call("list_calendars")
    odd.instead = (302, {"Location": "/again"}, b"")
    with pytest.raises(Unavailable, match="without end"):
        await call("list_calendars")


@pytest.mark.parametrize(
    ("home_url", "other", "may"),
    [
        ("https://caldav.icloud.com/", "https://p52-caldav.icloud.com:443/1/", True),
        ("http://nas.local:5232/", "http://nas.local:5232/ada/", True),
        ("http://dav.example.org/", "https://dav.example.org/", True),
        ("https://dav.example.org/", "http://dav.example.org/", False),
        ("http://nas.local:5232/", "http://nas.local:80/", False),
        ("https://example.org/", "https://evil.org/", False),
        ("https://dav.example.org/", "https://dav.example.net/", False),
        ("https://10.0.0.1/", "https://11.0.0.1/", False),
        ("https://dav.example.org/", "file:///etc/passwd", False),
        ("https://dav.example.org/", "https://dav.example.org:bad/", False),
    ],
)
def test_where_a_password_may_be_shown(home_url: str, other: str, may: bool) -> None:
    assert same_site(home_url, other) is may


async def test_a_change_whose_answer_is_lost_is_not_said_to_have_failed(
    call: CallTool, home: Home, odd: OddServer
) -> None:
    write_connection(home, "mail", odd.account())
    odd.drops = {"PUT", "DELETE"}
    with pytest.raises(OutcomeUnknown):
        await call("create_event", summary="x", start_date="2026-12-03")
    with pytest.raises(OutcomeUnknown):
        await call("delete_event", event_id="0.ics")


async def test_a_call_that_is_cancelled_does_not_wait_for_the_server(
    call: CallTool, home: Home, odd: OddServer
) -> None:
    write_connection(home, "mail", odd.account())
    odd.gate.clear()
    waiting = asyncio.create_task(call("list_events"))
    assert await asyncio.to_thread(odd.reached.wait, 10)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, seconds(5))
    odd.gate.set()
    assert (await call("list_events")).events == []


async def test_a_zone_that_is_none_is_the_operators_to_mend(
    gmail_config: MailCalendarConfig, caldav: CalDavWorld
) -> None:
    config = replace(gmail_config, timezone="Nowhere")
    server = ToolServer("gmail", calendar_groups(Accounts(config), config))
    with pytest.raises(ConfigMistake, match="USER_TIMEZONE"):
        await server.tools["list_events"].call({})
