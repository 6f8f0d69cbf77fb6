"""Tells the owner in their chat app what they should know: what started, what fails, what was switched off.

What another agent wants to do and the owner has to allow is asked there, too: nobody reads that agent's own chat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import CHAT_APPS, OWNER, StoredEvent
from annabelle.core.tools import JsonObject
from annabelle.hub.approvals.questions import render_questions
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.notices import STARTUP, HubNotice
from annabelle.hub.security.identities import AGENT_CHANNEL
from annabelle.hub.security.users_file import hash_token
from annabelle.store import approvals, channels, threads
from annabelle.store.outbox import post
from annabelle.store.threads import Thread

_log = logging.getLogger(__name__)
_WAITING: Final = 100


class AdminNotices:
    """Sends a notice once a day, to the chat of `NOTIFY_CHANNEL`, else where the owner paired an account last."""

    def __init__(self, base: HubBase, storage: HubStorage) -> None:
        self._base, self._storage = base, storage
        self._place = (base.settings.notify_channel, base.settings.notify_chat_id)
        self._waiting: asyncio.Queue[HubNotice | str] = asyncio.Queue(_WAITING)
        """Notices, and ids of questions."""
        self._tasks = BackgroundTasks()
        base.notices.subscribe(self._on_notice)
        storage.events.subscribe(self._on_events)

    async def start(self) -> None:
        self._tasks.start(self._send())

    async def stop(self) -> None:
        await self._tasks.stop()

    def _on_notice(self, notice: HubNotice) -> None:
        if notice.tell_owner:
            self._put(notice)

    def _on_events(self, events: Sequence[StoredEvent]) -> None:
        for event in events:
            if event.type == "approval":
                self._put(str(event.data["approval_id"]))

    def _put(self, told: HubNotice | str) -> None:
        if not self._waiting.full():  # the rest is in the log and in the status
            self._waiting.put_nowait(told)

    async def _send(self) -> None:
        while True:
            told = await self._waiting.get()
            try:
                await self._storage.events.transact(lambda conn, told=told: self._post(conn, told))
            except AnnabelleError as trouble:
                _log.warning("A notice could not be sent: %s", trouble.message)

    def _post_question(self, conn: Connection, approval_id: str) -> WriteResult[None]:
        found = [one for one in approvals.list_approvals(conn, OWNER, "pending", _WAITING) if one.id == approval_id]
        thread = self._find_chat(conn)
        where = threads.load_thread(conn, found[0].thread_id).channel if found else ""
        if thread is None or not where.startswith(AGENT_CHANNEL):
            return WriteResult(None, OWNER)
        asked = found[0]
        question = render_questions([asked], thread.channel)
        text = f"Another agent ({where.removeprefix(AGENT_CHANNEL)}) asks for this:\n\n{question}"
        about: JsonObject = {"approvals": [asked.id]}
        return WriteResult(None, OWNER, post(conn, thread.id, text, f"question:{asked.id}", about))

    def _post(self, conn: Connection, told: HubNotice | str) -> WriteResult[None]:
        return self._post_question(conn, told) if isinstance(told, str) else self._post_notice(conn, told)

    def _post_notice(self, conn: Connection, notice: HubNotice) -> WriteResult[None]:
        thread = self._find_chat(conn)
        if thread is None:
            return WriteResult(None, OWNER)
        once = self._base.lifecycle.started_at if notice.topic == STARTUP else notice.at.date()
        key = f"notice:{notice.topic}:{once}:{hash_token(notice.text.encode())[:16]}"
        return WriteResult(None, OWNER, post(conn, thread.id, notice.text, key, {"notice": notice.topic}))

    def _find_chat(self, conn: Connection) -> Thread | None:
        own = [one for one in channels.list_accounts(conn) if one.user_id == OWNER and one.chat_id is not None]
        paired = [(one.channel, one.chat_id) for one in sorted(own, key=lambda one: one.created_at)]
        wanted = self._place if self._place[0] in CHAT_APPS else next(reversed(paired), ("", None))
        for thread in threads.list_threads(conn, OWNER, limit=1000):
            if thread.ended_at is None and (thread.channel, thread.chat_id) == wanted:
                return thread
        return None
