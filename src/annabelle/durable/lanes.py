"""Lanes: one turn at a time per thread, many threads at once, never more than a bound (DUR-04)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError
from annabelle.durable.durable import Durable
from annabelle.store import claims
from annabelle.store.claims import Claimed
from annabelle.store.database import Database

_log = logging.getLogger(__name__)

Start = Callable[[str], Awaitable[None]]


class Lanes:
    """Decides which message is worked on next. The claim row decides; this only moves it.

    `start(message_id)` begins the workflow whose id is the message id; it must be idempotent, as `Durable.start` is.
    """

    def __init__(self, db: Database, durable: Durable, owner: str, max_running: int, start: Start) -> None:
        self._db, self._durable, self._owner = db, durable, owner
        self._max_running, self._start = max_running, start
        self._not_started: dict[str, None] = {}

    async def offer(self, thread_id: str) -> None:
        """Begin the thread's next message at once if the thread is idle and there is room; else it stays queued."""
        await self._begin(await self._claim(thread_id))

    async def finished(self, message_id: str) -> None:
        """Let the thread of a finished message go on, and fill every place that is free."""

        def move_on(connection: Connection) -> list[Claimed]:
            claims.release(connection, message_id)
            return claims.claim_next(connection, self._owner, self._max_running)

        await self._begin(await self._db.write(move_on))

    async def resume(self) -> None:
        """At start-up: take up again what this owner had claimed, let go of what has ended, and claim what waits."""
        held = await self._db.read(lambda connection: claims.held(connection, self._owner))
        ended: list[str] = []
        for claimed in held:
            state = await self._durable.status(claimed.message_id)
            if state in ("done", "failed", "cancelled"):
                # Killed between the end of its workflow and the release of its claim.
                ended.append(claimed.message_id)
        await self._begin(claimed for claimed in held if claimed.message_id not in ended)

        def let_go(connection: Connection) -> list[Claimed]:
            for message_id in ended:
                claims.release(connection, message_id)
            return claims.claim_next(connection, self._owner, self._max_running)

        await self._begin(await self._db.write(let_go))

    async def _claim(self, thread_id: str | None) -> list[Claimed]:
        return await self._db.write(
            lambda connection: claims.claim_next(connection, self._owner, self._max_running, thread_id)
        )

    async def _begin(self, claimed: Iterable[Claimed]) -> None:
        self._not_started.update(dict.fromkeys(one.message_id for one in claimed))
        for message_id in list(self._not_started):
            try:
                await self._start(message_id)
            except AnnabelleError as error:
                # The claim stays, so nobody else takes it; it is tried again with the next message that moves.
                _log.warning("%s could not be started yet: %s", message_id, error.message)
            else:
                self._not_started.pop(message_id, None)
