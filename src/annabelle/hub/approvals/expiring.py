"""Ends questions whose time is over, at the start and whenever one runs out (POL-03, I-28)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import now
from annabelle.core.ports import Audit
from annabelle.hub.approvals.ending import Ended, end_waiting
from annabelle.hub.events.log import EventLog, Written
from annabelle.store import open_questions
from annabelle.store.database import Database

_log = logging.getLogger(__name__)
LOOK_SECONDS: Final = 60.0
"""The longest sleep: a clock that was set forward is noticed within it."""
_SHORTEST_SECONDS: Final = 0.5
_STOP_SECONDS: Final = 5.0


class Expiring:
    """One task that sleeps until the next question runs out; the clock is the wall's, for hours are promised."""

    def __init__(
        self,
        database: Database,
        events: EventLog,
        ended: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = now,
        audit: Audit | None = None,
    ) -> None:
        self._database, self._events, self._ended, self._clock = database, events, ended, clock
        self._audit = audit
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """End what ran out while nobody was there, then watch."""
        await self._look()
        self._task = asyncio.create_task(self._watch())

    def asked(self) -> None:
        """There is a new question."""
        self._asked.set()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_STOP_SECONDS)

    async def look(self) -> None:
        """End every question whose time is over."""
        at = self._clock()
        for message_id in await self._database.read(lambda conn: open_questions.due(conn, at)):

            def end(conn: Connection, message_id: str = message_id) -> Written[Ended]:
                ended = end_waiting(conn, message_id, "expired")
                return Written(ended, ended.user_id, ended.events)

            (await self._events.transact(end)).note(self._audit, "expired")
            self._ended()

    async def _look(self) -> None:
        try:
            await self.look()
        except AnnabelleError as error:
            _log.warning("Questions whose time is over could not be ended yet: %s", error.message)

    async def _watch(self) -> None:
        while True:
            self._asked.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), await self._sleep())
            await self._look()

    async def _sleep(self) -> float:
        try:
            following = await self._database.read(open_questions.next_expiry)
        except AnnabelleError:
            return LOOK_SECONDS
        if following is None:
            return LOOK_SECONDS
        return min(LOOK_SECONDS, max(_SHORTEST_SECONDS, (following - self._clock()).total_seconds()))
