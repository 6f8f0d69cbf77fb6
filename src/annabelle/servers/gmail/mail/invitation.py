"""What a calendar part of a mail invites to. Loaded on first use: the calendar library is large."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Protocol, cast

from annabelle.servers.gmail.calendar.caldav.component import read_calendar
from annabelle.servers.gmail.mail.header_text import plain
from annabelle.servers.gmail.mail.models import Invitation

_MAX_BYTES = 1_000_000


class _Component(Protocol):
    def get(self, name: str) -> object: ...
    def walk(self, name: str) -> list[_Component]: ...


def read_invitation(data: bytes) -> Invitation | None:
    """The first event of the part; None when there is none that can be read."""
    try:
        calendar = cast("_Component", read_calendar(data[:_MAX_BYTES]))
        events = calendar.walk("VEVENT")
        if not events:
            return None
        event = events[0]
        start, end = _when(event.get("DTSTART")), _when(event.get("DTEND"))
        if end is None and start is not None and event.get("DURATION") is not None:
            end = _after(event.get("DTSTART"), event.get("DURATION"))
        return Invitation(
            summary=_text(event.get("SUMMARY")) or "",
            start=start,
            end=end,
            organizer=_person(event.get("ORGANIZER")),
            uid=_text(event.get("UID")),
            location=_text(event.get("LOCATION")),
            method=_text(calendar.get("METHOD")),
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError):
        return None  # somebody else wrote it: what can not be read is still there as a file


def _when(value: object) -> str | None:
    at = getattr(value, "dt", None)
    return at.isoformat() if isinstance(at, date) else None


def _after(start: object, duration: object) -> str | None:
    begin, lasts = getattr(start, "dt", None), getattr(duration, "dt", None)
    if not isinstance(begin, date) or not isinstance(lasts, timedelta):
        return None
    return (begin + lasts).isoformat()


def _text(value: object) -> str | None:
    return plain(str(value))[:500] if value is not None else None


def _person(value: object) -> str | None:
    if value is None:
        return None
    address = _text(value) or ""
    return address[7:] if address.lower().startswith("mailto:") else address
