"""Reads the invitation in a mail's calendar part. Imported on first use: the calendar library is large."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Protocol, cast

from annabelle.servers.mail_calendar.calendar.caldav.icalendar_event import read_calendar
from annabelle.servers.mail_calendar.mail.headers import decode_header_text
from annabelle.servers.mail_calendar.mail.mailbox import MailInvitation

_MAX_BYTES = 1_000_000


class _InvitationComponent(Protocol):
    def get(self, name: str) -> object: ...
    def walk(self, name: str) -> list[_InvitationComponent]: ...


def read_invitation(data: bytes) -> MailInvitation | None:
    """The first event of the part, or None."""
    try:
        calendar = cast("_InvitationComponent", read_calendar(data[:_MAX_BYTES]))
        events = calendar.walk("VEVENT")
        if not events:
            return None
        event = events[0]
        start, end = _read_time(event.get("DTSTART")), _read_time(event.get("DTEND"))
        if end is None and start is not None and event.get("DURATION") is not None:
            end = _read_end(event.get("DTSTART"), event.get("DURATION"))
        return MailInvitation(
            summary=_read_text(event.get("SUMMARY")) or "",
            start=start,
            end=end,
            organizer=_read_person(event.get("ORGANIZER")),
            uid=_read_text(event.get("UID")),
            location=_read_text(event.get("LOCATION")),
            method=_read_text(calendar.get("METHOD")),
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError):
        return None  # it is still available as an attachment


def _read_time(value: object) -> str | None:
    at = getattr(value, "dt", None)
    return at.isoformat() if isinstance(at, date) else None


def _read_end(start: object, duration: object) -> str | None:
    begin, lasts = getattr(start, "dt", None), getattr(duration, "dt", None)
    if not isinstance(begin, date) or not isinstance(lasts, timedelta):
        return None
    return (begin + lasts).isoformat()


def _read_text(value: object) -> str | None:
    return decode_header_text(str(value))[:500] if value is not None else None


def _read_person(value: object) -> str | None:
    if value is None:
        return None
    address = _read_text(value) or ""
    return address[7:] if address.lower().startswith("mailto:") else address
