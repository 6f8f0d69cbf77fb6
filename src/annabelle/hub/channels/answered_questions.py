"""Takes the buttons of a question away once it was answered, wherever that was, or is not asked any more (POL-05)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final, cast

from annabelle.channels.channel import Channel, NotDelivered
from annabelle.core.background import BackgroundTasks
from annabelle.core.backoff import backoff_seconds
from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import StoredEvent, now
from annabelle.hub.base import HubStorage
from annabelle.hub.channels.delivery import split_text
from annabelle.store import message_state
from annabelle.store.messages import StoredMessage

_SHOWN_FOR: Final = timedelta(days=2)
"""Longer than a question stays open."""
_ATTEMPTS: Final = 10
"""Over about a quarter of an hour."""
_RETRY_SECONDS: Final = 1.0
_LONGEST_WAIT: Final = 600.0
_log = logging.getLogger(__name__)


class AnsweredQuestions:
    def __init__(self, storage: HubStorage) -> None:
        self._storage, self._tasks = storage, BackgroundTasks()
        self._channels: dict[str, Channel] = {}
        storage.events.subscribe(self._on_events)

    def start(self, opened: Sequence[Channel]) -> None:
        self._channels = {channel.name: channel for channel in opened if channel.editable}

    async def stop(self) -> None:
        await self._tasks.stop()

    def _on_events(self, events: Sequence[StoredEvent]) -> None:
        for event in events if self._channels else ():
            if answered := _list_answered(event):
                self._tasks.start(self._close(answered, str(event.data["text"])))

    async def _close(self, answered: set[str], outcome: str) -> None:
        since, names = now() - _SHOWN_FOR, sorted(self._channels)
        closed: set[str] = set()
        for attempt in range(1, _ATTEMPTS + 1):
            found = await self._storage.database.read(lambda conn: message_state.list_questions(conn, names, since))
            asked = [(message, sent) for message, sent in found if answered & _list_asked(message)]
            for message, sent in asked:
                if sent.is_open or message.id in closed:
                    continue
                closed.add(message.id)
                if sent.parts_sent and (last := sent.parts_sent[-1]) is not None:
                    await self._edit(message, last, answered, outcome)
            if not any(sent.is_open for _, sent in asked):
                return
            # It is on its way to the person, perhaps with its buttons.
            await asyncio.sleep(backoff_seconds(attempt, _RETRY_SECONDS, _LONGEST_WAIT))

    async def _edit(self, message: StoredMessage, sent_id: str, answered: set[str], outcome: str) -> None:
        channel = self._channels[message.channel]
        last = split_text(channel, message)[-1]
        text = f"{last.text}\n\n{outcome}"
        left = [one for one in last.buttons if one.command.split()[-1] not in answered]
        changed = replace(last, text=text if len(text) <= channel.longest else last.text, buttons=left)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await channel.edit(message.chat_id, sent_id, changed)
            except AnnabelleError as trouble:
                _log.info("The buttons of %s stay for now: %s", message.id, trouble.message)
                if isinstance(trouble, NotDelivered) and trouble.retry_after is None:
                    return
                await asyncio.sleep(backoff_seconds(attempt, _RETRY_SECONDS, _LONGEST_WAIT))
            else:
                return


def _list_asked(message: StoredMessage) -> set[str]:
    return set(cast("list[str]", message.metadata.get("approvals") or []))


def _list_answered(event: StoredEvent) -> set[str]:
    """The questions that are over with this event."""
    if event.key.startswith("decided:"):
        return {str(event.data["approval_id"])}
    return set(cast("list[str]", event.data.get("ended") or [])) if event.type == "message" else set()
