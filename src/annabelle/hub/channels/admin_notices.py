"""Tells the owner in their chat app what they should know: what started, what fails, what was switched off."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from sqlalchemy import Connection

from annabelle.channels import CHAT_APPS
from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import OWNER
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.notices import STARTUP, HubNotice
from annabelle.hub.outbox import post
from annabelle.hub.security.users_file import hash_token
from annabelle.store import channels, threads
from annabelle.store.threads import Thread

_log = logging.getLogger(__name__)
_WAITING: Final = 100


class AdminNotices:
    """Sends a notice once a day, to the chat of `NOTIFY_CHANNEL`, else where the owner paired an account last."""

    def __init__(self, base: HubBase, storage: HubStorage) -> None:
        self._base, self._storage = base, storage
        self._place = (base.settings.notify_channel, base.settings.notify_chat_id)
        self._waiting: asyncio.Queue[HubNotice] = asyncio.Queue(_WAITING)
        self._tasks = BackgroundTasks()
        base.notices.subscribe(self._on_notice)

    async def start(self) -> None:
        self._tasks.start(self._send())

    async def stop(self) -> None:
        await self._tasks.stop()

    def _on_notice(self, notice: HubNotice) -> None:
        if notice.told_elsewhere or (notice.level == "info" and notice.topic != STARTUP):
            return
        if not self._waiting.full():  # the rest is in the log and in the status
            self._waiting.put_nowait(notice)

    async def _send(self) -> None:
        while True:
            notice = await self._waiting.get()
            try:
                await self._storage.events.transact(lambda conn, notice=notice: self._post(conn, notice))
            except AnnabelleError as trouble:
                _log.warning("A notice could not be sent: %s", trouble.message)

    def _post(self, conn: Connection, notice: HubNotice) -> WriteResult[None]:
        thread = self._find_chat(conn)
        if thread is None:
            return WriteResult(None, OWNER)
        once = self._base.lifecycle.started_at if notice.topic == STARTUP else notice.at.date()
        key = f"notice:{notice.topic}:{once}:{hash_token(notice.text.encode())[:16]}"
        return WriteResult(None, OWNER, post(conn, thread.id, notice.text, key, {"notice": notice.topic}))

    def _find_chat(self, conn: Connection) -> Thread | None:
        paired = [(one.channel, one.chat_id) for one in channels.list_accounts(conn) if one.user_id == OWNER]
        wanted = self._place if self._place[0] in CHAT_APPS else next(reversed(paired), ("", None))
        for thread in threads.list_threads(conn, OWNER, limit=1000):
            if thread.ended_at is None and (thread.channel, thread.chat_id) == wanted:
                return thread
        return None
