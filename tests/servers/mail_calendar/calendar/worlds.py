"""The two kinds of calendar servers the tools are tested against, seen from the side of the server."""

from __future__ import annotations

from typing import Protocol

from annabelle.core.connections import write_connection
from annabelle.core.home import Home
from support.caldav_server import USER, CalDavServer
from support.google_double.calendar import CalendarPart
from support.google_double.server import GoogleDouble

MAIN = "main"
"""The main calendar of the user on the CalDAV server; at Google it is called by the address."""

INVITATION = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Somebody//EN
BEGIN:VEVENT
UID:invitation
DTSTAMP:20261101T000000Z
DTSTART;TZID=Europe/Berlin:20261203T090000
DTEND;TZID=Europe/Berlin:20261203T100000
SUMMARY:Board
X-OTHER:keep me
ORGANIZER:mailto:bob@example.com
ATTENDEE;CN=Ada;PARTSTAT=NEEDS-ACTION:mailto:ada@example.com
ATTENDEE;CN=Bob;PARTSTAT=ACCEPTED:mailto:bob@example.com
END:VEVENT
END:VCALENDAR
"""


class World(Protocol):
    name: str

    def connect(self, home: Home) -> None: ...
    def add_calendar(self, name: str, shown: str) -> None: ...
    def stored(self, calendar: str | None = None) -> list[str]:
        """Everything the server has, one text for each event."""
        ...

    def invite(self) -> str:
        """Somebody invites the user to a meeting on 3 December at nine in Berlin; the id it has in a call."""
        ...

    def meddle(self, event_id: str, location: str) -> None:
        """Another program changes where an event is."""
        ...


class GoogleWorld:
    name = "google"

    def __init__(self, double: GoogleDouble, part: CalendarPart) -> None:
        self.double, self.part = double, part

    def connect(self, home: Home) -> None:
        write_connection(home, "google", self.double.account())

    def add_calendar(self, name: str, shown: str) -> None:
        self.part.make_calendar(name, shown)

    def stored(self, calendar: str | None = None) -> list[str]:
        return [str(event) for event in self.part.live(calendar or "primary")]

    def invite(self) -> str:
        self.part.put(
            {
                "id": "invitation",
                "summary": "Board",
                "start": {"dateTime": "2026-12-03T09:00:00+01:00", "timeZone": "Europe/Berlin"},
                "end": {"dateTime": "2026-12-03T10:00:00+01:00", "timeZone": "Europe/Berlin"},
                "organizer": {"email": "bob@example.com"},
                "attendees": [
                    {"email": "ada@example.com", "displayName": "Ada", "comment": "keep me"},
                    {"email": "bob@example.com", "displayName": "Bob", "responseStatus": "accepted"},
                ],
            }
        )
        return "invitation"

    def meddle(self, event_id: str, location: str) -> None:
        event = next(event for event in self.part.live() if event["id"] == event_id)
        self.part.put({**event, "location": location})


class CalDavWorld:
    name = "caldav"

    def __init__(self, server: CalDavServer) -> None:
        self.server = server

    def connect(self, home: Home) -> None:
        write_connection(home, "mail", self.server.account(path=f"{USER}/{MAIN}/"))

    def add_calendar(self, name: str, shown: str) -> None:
        self.server.make_calendar(name, shown)

    def stored(self, calendar: str | None = None) -> list[str]:
        return [text.replace("\n ", "") for text in self.server.stored(calendar or MAIN).values()]

    def invite(self) -> str:
        self.server.put(MAIN, "invitation.ics", INVITATION)
        return "invitation.ics"

    def meddle(self, event_id: str, location: str) -> None:
        name = event_id.partition("#")[0]
        lines = self.server.stored(MAIN)[name].splitlines()
        kept = [line for line in lines if not line.startswith("LOCATION")]
        kept.insert(kept.index("BEGIN:VEVENT") + 1, f"LOCATION:{location}")
        self.server.put(MAIN, name, "\n".join([*kept, ""]))
