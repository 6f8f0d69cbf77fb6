"""Mails that others write."""

from __future__ import annotations

from email.message import EmailMessage
from email.policy import SMTP
from email.utils import make_msgid

INVITATION = b"""BEGIN:VCALENDAR\r
VERSION:2.0\r
METHOD:REQUEST\r
BEGIN:VEVENT\r
UID:meeting-1@example.org\r
DTSTAMP:20261101T080000Z\r
DTSTART:20261201T090000Z\r
DTEND:20261201T100000Z\r
SUMMARY:Budget talk\r
ORGANIZER;CN=Bob:mailto:bob@example.org\r
LOCATION:Room 4\r
END:VEVENT\r
END:VCALENDAR\r
"""


def mail(
    subject: str = "Lunch",
    text: str = "Shall we have lunch?",
    *,
    sender: str = "Bob Bauer <bob@example.org>",
    to: str = "ada@example.com",
    files: dict[str, bytes] | None = None,
    invitation: bytes | None = None,
    **headers: str,
) -> bytes:
    """A mail as a good client writes it. A header's name is given with underscores."""
    made = EmailMessage(policy=SMTP)
    made["From"], made["To"], made["Subject"] = sender, to, subject
    made["Date"] = "Sat, 14 Nov 2026 10:00:00 +0100"
    made["Message-ID"] = headers.pop("Message_ID", make_msgid(domain="example.org"))
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    if invitation is not None:
        made.add_alternative(invitation.decode(), subtype="calendar", params={"method": "REQUEST"})
    for name, data in (files or {}).items():
        made.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return made.as_bytes()
