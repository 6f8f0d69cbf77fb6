"""The sessions of one agent as its turns see them: turns, compaction and earlier conversations."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Collection, Coroutine
from dataclasses import dataclass
from datetime import tzinfo

from annabelle.core.contract import TurnBrief
from annabelle.core.errors import AnnabelleError
from annabelle.thinker.prompt.clock import format_day
from annabelle.thinker.session.archive_search import ArchiveSearch, HistoryTool
from annabelle.thinker.session.archiver import WAITED_FOR_SECONDS, SessionArchiver
from annabelle.thinker.session.compaction import Compactor
from annabelle.thinker.session.records import Archive, ArchiveReason, SessionTurn
from annabelle.thinker.session.session_store import SessionStore, SessionView

_log = logging.getLogger(__name__)
_MOST_RELEVANT = 2


@dataclass(frozen=True, slots=True)
class EarlierDeps:
    """What is needed to show earlier conversations in a turn."""

    search: ArchiveSearch
    summaries: int
    time_zone: tzinfo


class Conversations:
    """Combines store, compactor and archiver. Slow work runs after the answer."""

    def __init__(
        self, store: SessionStore, compactor: Compactor, archivist: SessionArchiver, earlier: EarlierDeps
    ) -> None:
        self._store, self._compactor, self._archivist, self._earlier = store, compactor, archivist, earlier
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Start archiving idle conversations."""
        self._start_background(self._scan_forever())

    async def load(self, brief: TurnBrief) -> SessionView:
        """The session for a new turn, without a record of this turn."""
        session = await self._archivist.archive_before_turn(brief.thread_id, brief.message_id)
        turns = [turn for turn in session.turns if turn.message_id != brief.message_id]
        compaction = session.compaction.summary if session.compaction is not None else ""
        if not brief.conversational:
            return SessionView(turns, compaction)
        archives = [one for one in await self._store.archives(brief.thread_id) if one.user_id == brief.user_id]
        if not archives:
            return SessionView(turns, compaction)
        earlier = self._earlier
        tool = HistoryTool(self._store, earlier.search, brief.thread_id, archives, earlier.time_zone)
        return SessionView(turns, compaction, await self._summaries(archives, brief.text), (tool,))

    async def _summaries(self, archives: list[Archive], text: str) -> list[str]:
        """Summaries of relevant older conversations, then of the latest ones."""
        older = archives[: max(0, len(archives) - self._earlier.summaries)]
        shown = [*await self._earlier.search.find_relevant(older, text, _MOST_RELEVANT), *archives[len(older) :]]
        return [f"{format_day(archive.ended_at, self._earlier.time_zone)}: {archive.summary}" for archive in shown]

    async def turns(self, thread_id: str) -> list[SessionTurn]:
        return list((await self._store.session(thread_id)).turns)

    async def append(self, thread_id: str, record: SessionTurn) -> None:
        """Add a turn. A repeated message id changes nothing, so a replay is harmless."""
        self._archivist.touch(thread_id)
        await self._store.append(thread_id, record)

    def answered(self, thread_id: str, archive_as: ArchiveReason | None = None) -> None:
        """Called after the answer: archive or compact the session in the background."""
        self._start_background(
            self._compact_if_due(thread_id) if archive_as is None else self._archive_as(thread_id, archive_as)
        )

    async def clear(self, thread_id: str, *, by_model: bool = True) -> None:
        """Archive the conversation and start with an empty history."""
        await self._archivist.archive(thread_id, "manual", timeout=WAITED_FOR_SECONDS if by_model else 0)

    async def remove_turns(self, thread_id: str, message_ids: Collection[str]) -> None:
        """Remove the turns of these messages for good, and every summary that tells of them."""
        await self._store.remove_turns(thread_id, frozenset(message_ids))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._store.close()

    async def _archive_as(self, thread_id: str, reason: ArchiveReason) -> None:
        try:
            await self._archivist.archive(thread_id, reason)
        except AnnabelleError as error:  # it is archived once it is idle
            _log.warning("%s was not archived: %s", thread_id, error.message)

    async def _compact_if_due(self, thread_id: str) -> None:
        try:
            await self._compactor.start_if_due(thread_id)
        except AnnabelleError as error:
            _log.warning("%s was not compacted: %s", thread_id, error.message)

    async def _scan_forever(self) -> None:
        while True:
            # Wait first: turns that an earlier process left unfinished resume now, so their conversations are not idle.
            await asyncio.sleep(self._archivist.scan_seconds)
            try:
                await self._archivist.scan()
            except AnnabelleError as error:
                _log.warning("the scan for idle conversations failed: %s", error.message)

    def _start_background(self, job: Coroutine[object, object, None]) -> None:
        # In a new context, so that the job is not taken for a part of the turn.
        task = asyncio.create_task(job, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
