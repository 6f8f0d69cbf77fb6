"""Finds a user's calendars from the one address they gave: the user, their home, the calendars in it."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass

from annabelle.core.errors import NotAllowed, NotFound, Unavailable
from annabelle.servers.gmail.calendar.caldav.dav import Dav, DavAccount
from annabelle.servers.gmail.calendar.caldav.multistatus import CONNECT, Part, joined, properties
from annabelle.servers.gmail.calendar.event import Calendar

_WELL_KNOWN = "/.well-known/caldav"
_WHO = properties("d:current-user-principal", "c:calendar-home-set", "d:resourcetype")
_WHERE = properties("c:calendar-home-set")
_WHAT = properties(
    "d:resourcetype",
    "d:displayname",
    "c:calendar-description",
    "c:supported-calendar-component-set",
    "d:current-user-privilege-set",
)


@dataclass(frozen=True, slots=True)
class Collection:
    """A calendar and where it is."""

    calendar: Calendar
    url: str


async def discover(dav: Dav, account: DavAccount) -> list[Collection]:
    """All calendars that hold events; the first is the user's main one."""
    home = await _home(dav, account.url)
    parts = [part for part in await dav.ask("PROPFIND", home, _WHAT, depth=1) if _holds_events(part)]
    if not parts:
        raise Unavailable("The calendar server has no calendar for events.", hint="Make one there first.")
    given = account.url.rstrip("/")
    # The address the user gave may be that of one calendar, which is then the main one.
    parts.sort(key=lambda part: part.url.rstrip("/") != given)
    names = [_segment(part.url) for part in parts]
    return [
        Collection(
            Calendar(
                id=name if names.count(name) == 1 else urllib.parse.urlsplit(part.url).path,
                name=part.text("d:displayname") or urllib.parse.unquote(name),
                primary=index == 0,
                own="{DAV:}current-user-privilege-set" not in part.found
                or part.has("d:current-user-privilege-set", "d:write", "d:write-content", "d:all"),
                description=part.text("c:calendar-description"),
            ),
            part.url if part.url.endswith("/") else f"{part.url}/",
        )
        for index, (part, name) in enumerate(zip(parts, names, strict=True))
    ]


async def _home(dav: Dav, url: str) -> str:
    for start in (url, joined(url, _WELL_KNOWN)):
        try:
            parts = await dav.ask("PROPFIND", start, _WHO)
        except (NotFound, NotAllowed):
            continue  # many servers keep nothing at their root
        for part in parts:
            home = part.linked("c:calendar-home-set")
            principal = part.linked("d:current-user-principal")
            if home is None and principal is not None:
                homes = [found.linked("c:calendar-home-set") for found in await dav.ask("PROPFIND", principal, _WHERE)]
                home = next((found for found in homes if found), None)
            if home is not None:
                return home
    raise Unavailable("There are no calendars at the calendar server's address.", hint=CONNECT)


def _holds_events(part: Part) -> bool:
    kinds = part.values("c:supported-calendar-component-set")
    return part.has("d:resourcetype", "c:calendar") and (not kinds or "VEVENT" in kinds)


def _segment(url: str) -> str:
    return urllib.parse.urlsplit(url).path.rstrip("/").rsplit("/", 1)[-1]
