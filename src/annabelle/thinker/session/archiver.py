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
"""What somebody who waits, as for an answer, gives the model to sum a conversation up."""

_SCAN_SECONDS: Final = 60.0
_LEAST_SCAN_SECONDS: Final = 0.5
_NEVER_MINUTES: Final = 100 * 365 * 24 * 60.0  # who sets more means never, and no date reaches further

_log = logging.getLogger(__name__)


class SessionArchiver:
    """One per thinker. Two that archive one conversation at once archive it once: its id is its last message."""

    def __init__(self, store: SessionStore, summariser: Summariser, idle_minutes: float, trace: TraceFile) -> None:
        self._store, self._summariser, self._trace = store, summariser, trace
        self._idle = timedelta(minutes=min(idle_minutes, _NEVER_MINUTES))
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._touched: dict[str, datetime] = {}
        self._seen: dict[str, tuple[str, SessionState]] = {}

    def touch(self, thread_id: str) -> None:
        """Somebody is talking in this thread right now, even if nothing of it is written yet."""
        self._touched[thread_id] = max(now(), self._touched.get(thread_id, now()))

    @property
    def scan_seconds(self) -> float:
        """How often to look: about each minute, and more often where conversations end sooner."""
        return min(_SCAN_SECONDS, max(_LEAST_SCAN_SECONDS, self._idle.total_seconds() / 2))

    async def archive_before_turn(self, thread_id: str, message_id: str) -> SessionState:
        """At a new message: archive what rested until it came. It waits a bounded time. The session it finds then."""
        session = await self._store.session(thread_id)
        if session.last_message_id != message_id and self._is_idle(thread_id, session):
            try:
                await self.archive(thread_id, "session_timeout", timeout=WAITED_FOR_SECONDS)
            except StorageTrouble as error:
                # A full disk: the conversation goes on, and is archived when there is room.
                _log.warning("%s could not be archived: %s", thread_id, error.message)
            session = await self._store.session(thread_id)
        self.touch(thread_id)
        return session

    async def scan(self) -> None:
        """Archive every conversation that has rested. What can not be read or written is tried again next time."""
        stamps = await self._store.threads()
        self._seen = {thread: seen for thread, seen in self._seen.items() if thread in stamps}
        for thread_id, stamp in stamps.items():
            try:
                if self._is_idle(thread_id, await self._cached_session(thread_id, stamp)):
                    await self.archive(thread_id, "session_timeout")
            except AnnabelleError as error:
                _log.warning("%s could not be archived: %s", thread_id, error.message)

    async def archive(self, thread_id: str, reason: ArchiveReason, timeout: float | None = None) -> Archive | None:
        """Store the conversation with its summary; None when there is none, or somebody went on with it meanwhile."""
        lock = self._locks[thread_id]
        try:
            async with asyncio.timeout(timeout):
                await lock.acquire()
        except TimeoutError:
            # Another is at it with a slow model: whoever stores it first ends it for both.
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
        try:
            async with asyncio.timeout(timeout):
                return await self._summariser.summarise_conversation(turns, before)
        except (AnnabelleError, TimeoutError) as error:
            reason = error.message if isinstance(error, AnnabelleError) else "it took too long"
            _log.info("a conversation is summed up by what the user wrote: %s", reason)
            return ConversationSummary(summarise_without_model(turns, before), by_model=False)

    async def _cached_session(self, thread_id: str, stamp: str) -> SessionState:
        """A session that has not changed since it was last looked at is not read again."""
        known = self._seen.get(thread_id)
        if known is None or known[0] != stamp:
            known = self._seen[thread_id] = stamp, _strip_content(await self._store.session(thread_id))
        return known[1]

    def _is_idle(self, thread_id: str, session: SessionState) -> bool:
        """Tasks are no conversation. The latest time anybody saw counts: a clock that goes back makes nothing old."""
        if session.last_at is None or not session.conversational:
            return False
        last = max(session.last_at, self._touched.get(thread_id, session.last_at))
        return now() - last >= self._idle


def _strip_content(session: SessionState) -> SessionState:
    """What tells when it rested, without what was said."""
    last = [turn for turn in session.turns if not turn.task][-1:]
    bare = [turn.model_copy(update={"messages": [], "user": "", "assistant": ""}) for turn in last]
    return SessionState(turns=bare, last_at=session.last_at)
