"""Thread queue: one turn at a time per thread, many threads at once, up to a limit (DUR-04).

Work in the background has a lane of its own, so that a person never waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from annabelle.core.clock import Clock
from annabelle.core.errors import AnnabelleError, StorageTrouble, Unavailable
from annabelle.durable.engine import Durable
from annabelle.store import claims
from annabelle.store.claims import ClaimedMessage
from annabelle.store.database import Database

_log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 5.0

StartMessage = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Lane:
    owner: str
    most: int
    background: bool = False


class ThreadQueue:
    """Starts messages according to their claim rows. `start(message_id)` must be idempotent, like `Durable.start`."""

    def __init__(
        self,
        db: Database,
        durable: Durable,
        clock: Clock,
        owner: str,
        max_running: int,
        start: StartMessage,
        background: int = 0,
    ) -> None:
        self._db, self._durable, self._clock, self._start = db, durable, clock, start
        lanes = (_Lane(owner, max_running), _Lane(f"{owner}:background", background, background=True))
        self._lanes = [lane for lane in lanes if lane.most]
        self._ended: set[str] = set()
        self._not_started: dict[str, None] = {}
        self._retry_task: asyncio.Task[None] | None = None
        self._held = False
        self._claiming = asyncio.Lock()
        """On PostgreSQL two concurrent claims could both take the last free slot."""

    def pause(self) -> None:
        """Starts nothing more; new messages wait."""
        self._held = True

    async def unpause(self) -> None:
        self._held = False
        await self._advance()

    async def start_next(self, thread_id: str) -> None:
        """Starts the thread's next message if the thread is idle and a slot is free; else it stays queued."""
        await self._advance(thread_id)

    async def finish_message(self, message_id: str) -> None:
        """Releases the thread of a finished message, and fills every free slot."""
        self._ended.add(message_id)
        await self._advance()

    async def recover(self) -> None:
        """At start-up: resumes this owner's claims, releases ended ones, and claims waiting messages."""
        owners = [lane.owner for lane in self._lanes]
        held = await self._db.read(lambda conn: [one for who in owners for one in claims.list_claims(conn, who)])
        going_on: list[str] = []
        for claimed in held:
            state = await self._durable.status(claimed.message_id)
            if state in ("done", "failed", "cancelled"):
                # Killed after its workflow ended and before its claim was released.
                self._ended.add(claimed.message_id)
            else:
                going_on.append(claimed.message_id)
        await self._start_messages(going_on)
        await self._advance()

    async def _advance(self, thread_id: str | None = None) -> None:
        """Releases ended claims, claims new ones and starts them. Errors only cause delay: messages are stored."""
        ended = tuple(self._ended)

        def release_and_claim(connection: Connection) -> list[ClaimedMessage]:
            for message_id in ended:
                claims.release_claim(connection, message_id)
            return [
                claimed
                for lane in ([] if self._held else self._lanes)
                for claimed in claims.claim_next_messages(
                    connection, lane.owner, lane.most, thread_id, background=lane.background, at=self._clock.now()
                )
            ]

        try:
            async with self._claiming:
                claimed = await self._db.write(release_and_claim)
        except (StorageTrouble, Unavailable) as trouble:
            _log.warning("The next message could not be claimed yet: %s", trouble.message)
            self._schedule_retry()
        else:
            self._ended.difference_update(ended)
            await self._start_messages(one.message_id for one in claimed)

    async def _start_messages(self, message_ids: Iterable[str]) -> None:
        self._not_started.update(dict.fromkeys(message_ids))
        for message_id in list(self._not_started) if not self._held else []:
            try:
                await self._start(message_id)
            except AnnabelleError as error:
                # The claim stays, so that no one else takes the message.
                _log.warning("%s could not be started yet: %s", message_id, error.message)
                self._schedule_retry()
            else:
                self._not_started.pop(message_id, None)

    def _schedule_retry(self) -> None:
        """Retries soon, because the next message may take long to come."""
        if self._retry_task is None or self._retry_task.done():
            self._retry_task = asyncio.create_task(self._retry_later())

    async def _retry_later(self) -> None:
        await asyncio.sleep(RETRY_SECONDS)
        self._retry_task = None
        await self._advance()
