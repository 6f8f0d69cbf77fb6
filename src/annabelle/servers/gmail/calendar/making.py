"""Makes an event once, however often the call for it is repeated, and changes one that others change too."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from annabelle.core.errors import Conflict
from annabelle.servers.gmail.calendar.event import Event
from annabelle.servers.gmail.calendar.service import CalendarService, Change, Draft
from annabelle.servers.kit import current_call

_TRIES = 5


async def make(service: CalendarService, calendar_id: str, draft: Draft) -> tuple[Event, bool]:
    """The event, and whether it is new.

    Its key comes from the call, or from what is in the event where the call has no id: so a repeat finds what was made
    before. An event that was changed or deleted since is no longer the one that is asked for, unless the call says it
    is the very same.
    """
    call = current_call()
    seed = f"call:{call.user_id}:{call.call_id}" if call.call_id else f"content:{calendar_id}:{draft!r}"
    for number in range(_TRIES):
        key = hashlib.sha256(f"{seed}:{number}".encode()).hexdigest()[:40]
        event, new = await service.create(calendar_id, replace(draft, key=key))
        if new or call.call_id or _same(event, draft):
            return event, new
    raise Conflict("Events like this one were made and changed several times.", hint="Change one of them instead.")


async def change_event(
    service: CalendarService, calendar_id: str, event_id: str, change_of: Callable[[Event], Change]
) -> Event:
    """Change what is there now. If somebody else was quicker, look again and make the change on what they left."""
    tries = _TRIES
    while True:
        tries -= 1
        event = await service.get(calendar_id, event_id)
        try:
            return await service.update(event, change_of(event))
        except Conflict:
            if not tries:
                raise


def _same(event: Event, draft: Draft) -> bool:
    known, asked = (event.summary, event.location, event.span), (draft.summary, draft.location, draft.span)
    return event.status != "cancelled" and known == asked
