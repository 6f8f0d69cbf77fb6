"""What came into the inbox at Google since it was last looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from annabelle.core.errors import NotFound
from annabelle.servers.gmail.google import GoogleSession
from annabelle.servers.gmail.mail import google_messages as wire
from annabelle.servers.gmail.mail.models import Arrived, MessageSummary

_ME = "/gmail/v1/users/me"
_MAX_PAGES = 10

Lines = Callable[[Iterable[str]], Awaitable[list[MessageSummary]]]


async def arrived(session: GoogleSession, lines: Lines, cursor: str | None, count: int) -> Arrived:
    """Mails behind the cursor, oldest first; those of a day without one, or when Google has forgotten that far back."""
    if cursor is not None and cursor.isdecimal():
        try:
            ids, behind, more = await _history(session, cursor, count)
        except NotFound:
            return await _of_a_day(session, lines, count)
        return Arrived(_still_there(await lines(ids)), behind, more)
    return await _of_a_day(session, lines, count)


async def _history(session: GoogleSession, cursor: str, count: int) -> tuple[list[str], str, bool]:
    """Ids in the order they came. When there are too many, the cursor stays behind the last one that is shown."""
    ids: list[str] = []
    behind, page_token = cursor, None
    for _ in range(_MAX_PAGES):
        params = {
            "startHistoryId": cursor,
            "historyTypes": "messageAdded",
            "labelId": "INBOX",
            "maxResults": 100,
            "pageToken": page_token,
        }
        page = await session.request("GET", f"{_ME}/history", params=params)
        for record in wire.entries(page, "history"):
            added = [wire.text(wire.inside(one, "message"), "id") for one in wire.entries(record, "messagesAdded")]
            new = [one for one in added if one and one not in ids]
            if ids and len(ids) + len(new) > count:
                return ids, behind, True
            ids += new
            behind = wire.text(record, "id") or behind
        page_token = wire.text(page, "nextPageToken") or None
        if page_token is None:
            return ids, wire.text(page, "historyId") or behind, False
    return ids, behind, True


async def _of_a_day(session: GoogleSession, lines: Lines, count: int) -> Arrived:
    # The cursor is taken first: what arrives in between is then seen twice rather than never.
    cursor = wire.text(await session.request("GET", f"{_ME}/profile"), "historyId")
    params = {"q": "newer_than:1d", "labelIds": ["INBOX"], "maxResults": count}
    page = await session.request("GET", f"{_ME}/messages", params=params)
    found = await lines(wire.text(one, "id") for one in wire.entries(page, "messages"))
    return Arrived(found[::-1], cursor, bool(wire.text(page, "nextPageToken")))


def _still_there(found: list[MessageSummary]) -> list[MessageSummary]:
    return [line for line in found if "INBOX" in line.labels]
