"""Tells the owner in a chat what cost control did; each thing once, however often it is told to (CST-04)."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.core.events import TurnEvent
from annabelle.core.messages import OWNER
from annabelle.core.settings import Settings
from annabelle.hub.agents.config import CostControls
from annabelle.hub.events.log import EventLog, Written
from annabelle.store import events, messages, threads
from annabelle.store.threads import Thread


class Announcer:
    """Writes into the chat an agent names for it, else the one of the settings, else the owner's latest one."""

    def __init__(self, log: EventLog, settings: Settings) -> None:
        self._log = log
        self._default = (settings.notify_channel, settings.notify_chat_id)

    async def say(self, key: str, text: str, agent_id: str, controls: CostControls) -> None:
        """The key makes it one message. Without any chat there is nobody to tell."""
        own = (controls.notify_channel or "", controls.notify_chat_id or "")
        place = own if any(own) else self._default

        def write(conn: Connection) -> Written[None]:
            thread = _thread(conn, place, agent_id)
            if thread is None:
                return Written(None, OWNER)
            said = messages.add_agent_message(conn, thread.id, text, key, metadata={"notice": "costs"})
            event = TurnEvent(
                message_id=said.id, key=f"said:{key}", type="message", data={"message_id": said.id, "text": text}
            )
            return Written(None, OWNER, events.append(conn, thread.id, [event]))

        await self._log.transact(write)


def _thread(conn: Connection, place: tuple[str, str], agent_id: str) -> Thread | None:
    channel, chat_id = place
    for thread in threads.listing(conn, OWNER, limit=1000):
        if channel in ("", thread.channel) and chat_id in ("", thread.chat_id):
            return thread
    if channel and chat_id:
        return threads.find_or_create(conn, channel=channel, chat_id=chat_id, user_id=OWNER, agent_id=agent_id)
    return None
