"""Archives conversations that have been idle long enough, or that somebody cleared (SES-03, SES-07)."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from annabelle.core.errors import AnnabelleError, StorageTrouble
from annabelle.core.messages import now
from annabelle.core.trace import TraceFile, use_trace
from annabelle.thinker.session.records import Archive, ArchiveReason, SessionState, SessionTurn
from annabelle.thinker.session.session_store import ConversationEnd, SessionStore
from annabelle.thinker.session.summariser import ConversationSummary, Summariser, summarise_without_model

WAITED_FOR_SECONDS: Final = 10.0
"""Time for the model's summary while a person waits for an answer."""

_SCAN_SECONDS: Final = 60.0
_LEAST_SCAN_SECONDS: Final = 0.5
_NEVER_MINUTES: Final = 100 * 365 * 24 * 60.0  # more means never, and would overflow dates

_log = logging.getLogger(__name__)


class SessionArchiver:
    """One per thinker. A conversation is archived once, identified by its last message."""

    def __init__(self, store: SessionStore, summariser: Summariser, idle_minutes: float, trace: TraceFile) -> None:
        self._store, self._summariser, self._trace = store, summariser, trace
        self._idle = timedelta(minutes=min(idle_minutes, _NEVER_MINUTES))
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._touched: dict[str, datetime] = {}
        self._seen: dict[str, tuple[str, SessionState]] = {}

    def touch(self, thread_id: str) -> None:
        """Note that this thread is active, even if nothing is stored yet."""
        self._touched[thread_id] = max(now(), self._touched.get(thread_id, now()))

    @property
    def scan_seconds(self) -> float:
        """The scan interval: a minute, or less for a short idle time."""
        return min(_SCAN_SECONDS, max(_LEAST_SCAN_SECONDS, self._idle.total_seconds() / 2))

    async def archive_before_turn(self, thread_id: str, message_id: str) -> SessionState:
        """Archive the conversation if it was idle until this message, within a bounded time. Returns the session."""
        session = await self._store.session(thread_id)
        if session.last_message_id != message_id and self._is_idle(thread_id, session):
            try:
                await self.archive(thread_id, "session_timeout", timeout=WAITED_FOR_SECONDS)
            except StorageTrouble as error:
                # As on a full disk: the conversation goes on and is archived later.
                _log.warning("%s could not be archived: %s", thread_id, error.message)
            session = await self._store.session(thread_id)
        self.touch(thread_id)
        return session

    async def scan(self) -> None:
        """Archive every idle conversation. Failures are retried by the next scan."""
        stamps = await self._store.threads()
        self._seen = {thread: seen for thread, seen in self._seen.items() if thread in stamps}
        for thread_id, stamp in stamps.items():
            try:
                if self._is_idle(thread_id, await self._cached_session(thread_id, stamp)):
                    await self.archive(thread_id, "session_timeout")
            except AnnabelleError as error:
                _log.warning("%s could not be archived: %s", thread_id, error.message)

    async def archive(self, thread_id: str, reason: ArchiveReason, timeout: float | None = None) -> Archive | None:
        """Store the conversation with its summary; None if there is none, or it has gone on meanwhile."""
        lock = self._locks[thread_id]
        try:
            async with asyncio.timeout(timeout):
                await lock.acquire()
        except TimeoutError:
            # Another task archives it with a slow model: the first to store it wins.
            return await self._archive_unlocked(thread_id, reason, timeout=0)
        try:
            return await self._archive_unlocked(thread_id, reason, timeout)
        finally:
            lock.release()

    async def _archive_unlocked(self, thread_id: str, reason: ArchiveReason, timeout: float | None) -> Archive | None:
        session = await self._store.session(thread_id)
        if session.last_message_id is None or (reason == "session_timeout" and not self._is_idle(thread_id, session)):
            return None
        turns = await self._store.open_turns(thread_id)
        with use_trace(turns[-1].trace_id):
            before = session.compaction.summary if session.compaction is not None else ""
            summary = await self._summarise(turns, before, timeout)
            archive = await self._store.archive(thread_id, ConversationEnd(turns[-1].message_id, reason, summary.text))
            if archive is not None:
                self._touched.pop(thread_id, None)
                told = {"thread_id": thread_id, "reason": reason, "messages": archive.message_count}
                self._trace.write("session.archived", {**told, "by_model": summary.by_model})
            return archive

    async def _summarise(self, turns: Sequence[SessionTurn], before: str, timeout: float | None) -> ConversationSummary:
        if timeout == 0:  # no model is to be asked
            return ConversationSummary(summarise_without_model(turns, before), by_model=False)
        try:
            async with asyncio.timeout(timeout):
                return await self._summariser.summarise_conversation(turns, before)
        except (AnnabelleError, TimeoutError) as error:
            reason = error.message if isinstance(error, AnnabelleError) else "it took too long"
            _log.info("a conversation is summarised by the user's messages: %s", reason)
            return ConversationSummary(summarise_without_model(turns, before), by_model=False)

    async def _cached_session(self, thread_id: str, stamp: str) -> SessionState:
        """The session, read again only if it has changed."""
        known = self._seen.get(thread_id)
        if known is None or known[0] != stamp:
            known = self._seen[thread_id] = stamp, _strip_content(await self._store.session(thread_id))
        return known[1]

    def _is_idle(self, thread_id: str, session: SessionState) -> bool:
        """Tasks are never idle. The latest known time counts, so that a clock set back makes nothing idle."""
        if session.last_at is None or not session.conversational:
            return False
        last = max(session.last_at, self._touched.get(thread_id, session.last_at))
        return now() - last >= self._idle


def _strip_content(session: SessionState) -> SessionState:
    """The session without texts: enough to see whether it is idle."""
    last = [turn for turn in session.turns if not turn.task][-1:]
    bare = [turn.model_copy(update={"messages": [], "user": "", "assistant": ""}) for turn in last]
    return SessionState(turns=bare, last_at=session.last_at)
