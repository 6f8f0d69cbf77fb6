"""The sessions of one agent as its turns see them: what was said, what was summed up, what was talked about before."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import tzinfo

from annabelle.core.contract import TurnBrief
from annabelle.core.errors import AnnabelleError
from annabelle.thinker.context.clock import day
from annabelle.thinker.session.archivist import WAITED_FOR_SECONDS, Archivist
from annabelle.thinker.session.compaction import Compactor
from annabelle.thinker.session.history_tool import HistoryTool
from annabelle.thinker.session.port import SessionStore, SessionView
from annabelle.thinker.session.records import Archive, TurnRecord
from annabelle.thinker.session.shelf import Shelf

_log = logging.getLogger(__name__)
_MOST_RELEVANT = 2


@dataclass(frozen=True, slots=True)
class Earlier:
    """How earlier conversations come back into a turn."""

    shelf: Shelf
    summaries: int
    where: tzinfo


class Conversations:
    """Puts the parts together. Everything that takes long happens behind the answer."""

    def __init__(self, store: SessionStore, compactor: Compactor, archivist: Archivist, earlier: Earlier) -> None:
        self._store, self._compactor, self._archivist, self._earlier = store, compactor, archivist, earlier
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._in_background(self._scan())

    async def load(self, brief: TurnBrief) -> SessionView:
        session = await self._archivist.before(brief.thread_id, brief.message_id)
        turns = [turn for turn in session.turns if turn.message_id != brief.message_id]
        compaction = session.compaction.summary if session.compaction is not None else ""
        if not brief.conversational:
            return SessionView(turns, compaction)
        archives = [one for one in await self._store.archives(brief.thread_id) if one.user_id == brief.user_id]
        if not archives:
            return SessionView(turns, compaction)
        earlier = self._earlier
        tool = HistoryTool(self._store, earlier.shelf, brief.thread_id, archives, earlier.where)
        return SessionView(turns, compaction, await self._summaries(archives, brief.text), (tool,))

    async def _summaries(self, archives: list[Archive], text: str) -> list[str]:
        """The latest ones, behind those older ones that have to do with the message."""
        older = archives[: max(0, len(archives) - self._earlier.summaries)]
        shown = [*await self._earlier.shelf.relevant(older, text, _MOST_RELEVANT), *archives[len(older) :]]
        return [f"{day(archive.ended_at, self._earlier.where)}: {archive.summary}" for archive in shown]

    async def turns(self, thread_id: str) -> list[TurnRecord]:
        return list((await self._store.session(thread_id)).turns)

    async def append(self, thread_id: str, record: TurnRecord) -> None:
        self._archivist.touch(thread_id)
        await self._store.append(thread_id, record)

    def answered(self, thread_id: str) -> None:
        self._in_background(self._compact(thread_id))

    async def clear(self, thread_id: str) -> None:
        await self._archivist.archive(thread_id, "manual", patience=WAITED_FOR_SECONDS)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._store.close()

    async def _compact(self, thread_id: str) -> None:
        try:
            await self._compactor.start_if_due(thread_id)
        except AnnabelleError as error:
            _log.warning("%s was not summed up: %s", thread_id, error.message)

    async def _scan(self) -> None:
        while True:
            # First the rest: turns that an earlier process left unfinished go on now, and are no idle conversations.
            await asyncio.sleep(self._archivist.scan_seconds)
            try:
                await self._archivist.scan()
            except AnnabelleError as error:
                _log.warning("idle conversations could not be looked for: %s", error.message)

    def _in_background(self, work: Coroutine[object, object, None]) -> None:
        # In a context of its own: what a turn begins here must not be taken for a part of the turn.
        task = asyncio.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
