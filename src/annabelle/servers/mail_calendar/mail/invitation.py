"""Reads the invitation in a mail's calendar part. Imported on first use: the calendar library is large."""

from __future__ import annotations

from datetime import timedelta

from annabelle.servers.mail_calendar.calendar.caldav.icalendar_event import (
    UNREADABLE,
    ICalComponent,
    get_address,
    get_time,
    read_calendar,
)
from annabelle.servers.mail_calendar.mail.headers import decode_header_text
from annabelle.servers.mail_calendar.mail.mailbox import MailInvitation

_MAX_BYTES = 1_000_000


def read_invitation(data: bytes) -> MailInvitation | None:
    """The first event of the part, or None."""
    try:
        calendar = read_calendar(data[:_MAX_BYTES])
        events = calendar.walk("VEVENT")
        if not events:
            return None
        event = events[0]
        start, end = get_time(event, "DTSTART"), get_time(event, "DTEND")
        lasts = getattr(event.get("DURATION"), "dt", None)
        if end is None and start is not None and isinstance(lasts, timedelta):
            end = start + lasts
        return MailInvitation(
            summary=_read_text(event, "SUMMARY") or "",
            start=start.isoformat() if start is not None else None,
            end=end.isoformat() if end is not None else None,
            organizer=get_address(_read_text(event, "ORGANIZER")) if "ORGANIZER" in event else None,
            uid=_read_text(event, "UID"),
            location=_read_text(event, "LOCATION"),
            method=_read_text(calendar, "METHOD"),
        )
    except (*UNREADABLE, RecursionError):
        return None  # it is still available as an attachment


def _read_text(component: ICalComponent, name: str) -> str | None:
    value = component.get(name)
    return decode_header_text(str(value))[:500] if value is not None else None
