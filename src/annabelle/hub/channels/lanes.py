"""Work per chat: one after the other in a chat, chats beside each other."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from annabelle.core.background import BackgroundTasks

_log = logging.getLogger(__name__)
Chat = tuple[str, str]
"""A channel, and a chat there."""


class ChatLanes:
    def __init__(self) -> None:
        self._tasks = BackgroundTasks()
        self._busy: set[Chat] = set()

    def is_busy(self, chat: Chat) -> bool:
        return chat in self._busy

    def start(self, chat: Chat, work: Callable[[], Awaitable[None]]) -> None:
        """Begin it unless something runs in that chat."""
        if chat not in self._busy:
            self._busy.add(chat)
            self._tasks.start(cast("Any", self._run(chat, work)))

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _run(self, chat: Chat, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:  # noqa: BLE001  nobody waits for this task
            _log.exception("Work in the chat %s of %s failed", chat[1], chat[0])
        finally:
            self._busy.discard(chat)
