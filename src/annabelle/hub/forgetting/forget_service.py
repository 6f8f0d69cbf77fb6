"""Forgets a text everywhere, in a repeatable order. The next start finishes an interrupted run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError, Conflict, StorageTrouble, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.home import Home
from annabelle.core.ports import AuditTrail
from annabelle.core.secrets.forget_mask import ForgetMatcher
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.expiry import close_questions
from annabelle.hub.conversations.turns import ActiveTurns, MaintenanceGate
from annabelle.hub.forgetting import forget_journal
from annabelle.hub.forgetting.databases import DatabaseSnapshots, WorkflowDatabases
from annabelle.hub.forgetting.files import HomeFiles, count_database_remains, find_personal_files, sweep_files
from annabelle.hub.forgetting.forget_journal import ForgetRequest, PendingForgetFile
from annabelle.hub.forgetting.memory_client import ForgetMemoryClient, MemoryFactMatch, MemoryMatches
from annabelle.hub.notices import Notices
from annabelle.store import approvals, text_removal
from annabelle.store.database import Database
from annabelle.store.tables import metadata
from annabelle.store.text_removal import TextRemoval
from annabelle.toolbox.facade import Toolbox

Fate = Literal["deleted", "masked", "rewritten"]

# Tables of the hub and the memory, by names that people understand.
_NAMES = {
    "changes": "tidying up",
    "events": "events",
    "import_rows": "imports",
    "profile_history": "profile history",
    "profiles": "profile",
    "project_sources": "project sources",
    "threads": "names of chats",
    "tool_calls": "tool results",
}
_DELETED = ("facts", "conversations", "contacts", "projects", "imports", "backups")
_REWRITTEN = ("profile", "profile history", "exports", "remains of deleted rows")


@dataclass(frozen=True, slots=True)
class ForgetReportLine:
    name: str
    count: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """Everything that was found. `own` lists the person's files, which are never changed."""

    places: tuple[ForgetReportLine, ...]
    facts: tuple[MemoryFactMatch, ...] = ()
    own: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(place.count for place in self.places)


def report_lines(*counts: Mapping[str, int]) -> tuple[ForgetReportLine, ...]:
    """All counts under names that people understand, deleted items first."""
    summed: dict[str, int] = {}
    for found in counts:
        for table, count in found.items():
            name = _NAMES.get(table, table.replace("_", " "))
            summed[name] = summed.get(name, 0) + count
    fates: list[ForgetReportLine] = [
        ForgetReportLine(name, count, _fate_of_place(name)) for name, count in summed.items() if count
    ]
    return tuple(sorted(fates, key=lambda place: (place.fate, place.name)))


def _fate_of_place(name: str) -> Fate:
    return "deleted" if name in _DELETED else "rewritten" if name in _REWRITTEN else "masked"


_log = logging.getLogger(__name__)
_TOPIC = "forgetting"
STILL_SECONDS = 60.0
PASSES = 3


_WEB_SERVER = "web"


@dataclass(frozen=True, slots=True)
class BrowserServer:
    home: Home
    toolbox: Toolbox

    async def close_browsers(self) -> None:
        """Restart the server to end its browsers, if any was used."""
        running = any(server.name == _WEB_SERVER and server.available for server in self.toolbox.servers())
        if running and self.home.browser_profiles.is_dir():
            await self.toolbox.restart(_WEB_SERVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetTargets:
    home: Home
    files: HomeFiles
    database: Database
    engines: WorkflowDatabases
    snapshots: DatabaseSnapshots
    memory: ForgetMemoryClient


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningWork:
    """Work to pause, because it moves people's data."""

    thread_queue: ThreadQueue
    turns: ActiveTurns
    maintenance: MaintenanceGate
    agents: AgentManager
    browser: BrowserServer


class ForgetService:
    def __init__(
        self,
        targets: ForgetTargets,
        work: RunningWork,
        notices: Notices,
        audit: AuditTrail | None = None,
        still_seconds: float = STILL_SECONDS,
    ) -> None:
        self._targets, self._work, self._notices, self._audit = targets, work, notices, audit
        self._still_seconds = still_seconds
        self._marker = PendingForgetFile(targets.home.forgetting_file)
        self._lock = asyncio.Lock()

    @property
    def memory(self) -> ForgetMemoryClient:
        return self._targets.memory

    @property
    def has_pending(self) -> bool:
        return self._marker.read() is not None

    async def preview(self, asked: ForgetRequest) -> ForgetReport:
        """Where the text is found. Nothing is changed or recorded."""
        found = await self._find_everywhere(asked)
        if found.places:
            return found
        left = await asyncio.to_thread(count_database_remains, self._targets.files, ForgetMatcher(asked.texts))
        return ForgetReport(report_lines({"remains of deleted rows": left}), own=found.own)

    async def _find_everywhere(self, asked: ForgetRequest) -> ForgetReport:
        targets, matcher = self._targets, ForgetMatcher(asked.texts)
        looking = TextRemoval(matcher, apply=False, user_id=asked.user_id)
        remembered = await targets.memory.find_matches(asked.texts, asked.user_id, asked.agent_id)
        stored = await targets.database.read(lambda conn: text_removal.remove_text(conn, looking))
        turns = await targets.engines.sweep(looking)
        files = await asyncio.to_thread(sweep_files, targets.files, matcher, apply=False)
        copies = await targets.snapshots.find_holding(matcher)
        own = await asyncio.to_thread(find_personal_files, targets.files, matcher)
        places = report_lines(remembered.counts, stored, {"turns": turns, "backups": len(copies)}, files)
        return ForgetReport(places, remembered.facts, tuple(own))

    async def find_near_facts(self, asked: ForgetRequest) -> tuple[MemoryFactMatch, ...]:
        """Facts with a similar meaning, for when the text is not found literally."""
        return await self._targets.memory.find_near_facts(asked.texts[0], asked.user_id, asked.agent_id)

    async def forget(self, asked: ForgetRequest) -> ForgetReport:
        """Forget for good. A failed run is finished at the next start or request."""
        if self._lock.locked():
            raise Conflict("Something is being forgotten this moment.", hint="Try again when it is done.")
        async with self._lock, self._everything_paused():
            begun = self._marker.read()
            if begun is not None:
                # Also finish an earlier, unfinished request.
                asked = asked.model_copy(update={"texts": (*begun.texts, *asked.texts)})
            self._marker.write(asked)
            try:
                return await self._forget_everywhere(asked)
            except AnnabelleError:
                self._notices.add(
                    _TOPIC,
                    "Something could not be forgotten everywhere yet; it is tried again at the next start.",
                    level="error",
                )
                raise

    async def resume(self) -> None:
        """Finish the request of a killed process. Call it at start, before anything else runs."""
        pending = self._marker.read()
        if pending is None:
            return
        _log.warning("Finishing what was being forgotten when the hub ended")
        try:
            async with self._lock:
                await self._forget_everywhere(pending)
        except AnnabelleError as error:
            self._notices.add(
                _TOPIC, f"Something could not be forgotten everywhere yet: {error.message}", level="error"
            )

    @contextlib.asynccontextmanager
    async def _everything_paused(self) -> AsyncGenerator[None]:
        """While inside, no work that moves people's data runs."""
        work = self._work
        work.thread_queue.pause()
        work.maintenance.pause()
        try:
            turns_over = await work.turns.wait_all_over(self._still_seconds)
            if not (turns_over and await work.maintenance.wait_idle(self._still_seconds)):
                raise Unavailable(
                    "Annabelle is still working on a message, so nothing was forgotten.",
                    hint="Try again when the answer is there, or stop the turn.",
                )
            async with self._targets.engines.suspended(), work.agents.all_stopped():
                await work.browser.close_browsers()
                yield
        finally:
            work.maintenance.unpause()
            await work.thread_queue.unpause()

    async def _forget_everywhere(self, asked: ForgetRequest) -> ForgetReport:
        """Repeat until the text is gone: a log may rotate or a tool may answer during a pass."""
        failpoint("hub.forget_begun")
        counts, remembered = await self._run_pass(asked)
        facts, left = remembered.facts, await self._find_everywhere(asked)
        for _ in range(PASSES - 1):
            if not left.places:
                break
            more, _remembered = await self._run_pass(asked)
            counts, left = counts + more, await self._find_everywhere(asked)
        if left.places:
            names = ", ".join(place.name for place in left.places)
            raise StorageTrouble(f"It still stands in: {names}.", hint="Close what writes there, and try again.")
        failpoint("hub.forget_verified")
        places = report_lines(*counts)
        counted = {place.name: place.count for place in places}
        hashes = await asyncio.to_thread(forget_journal.record_forgotten, self._targets.home, asked, counted)
        if self._audit is not None:
            self._audit.note("forget", {"user_id": asked.user_id, "hashes": hashes, "places": counted})
        failpoint("hub.forget_recorded")
        await asyncio.to_thread(self._marker.remove)
        self._notices.clear(_TOPIC)
        return ForgetReport(places, facts, left.own)

    async def _run_pass(self, asked: ForgetRequest) -> tuple[list[Mapping[str, int]], MemoryMatches]:
        targets, matcher = self._targets, ForgetMatcher(asked.texts)
        sweep = TextRemoval(matcher, apply=True, user_id=asked.user_id)
        remembered = await targets.memory.forget(asked.texts, asked.user_id, asked.agent_id)
        failpoint("hub.forget_memory_done")
        stored = await targets.database.write(lambda conn: _mask_rows(conn, sweep))
        failpoint("hub.forget_rows_masked")
        await targets.database.vacuum([f'"{name}"' for name in metadata.tables])
        failpoint("hub.forget_store_done")
        turns = await targets.engines.sweep(sweep)
        failpoint("hub.forget_engines_done")
        copies = await targets.snapshots.drop(matcher)
        files = await asyncio.to_thread(sweep_files, targets.files, matcher, apply=True)
        failpoint("hub.forget_files_done")
        return [remembered.counts, stored, {"turns": turns, "backups": copies}, files], remembered


def _mask_rows(conn: Connection, sweep: TextRemoval) -> dict[str, int]:
    """Mask the rows and close the questions about them, because masked calls cannot be approved."""
    counts = text_removal.remove_text(conn, sweep)
    for message_id in approvals.list_forgotten_messages(conn, text_removal.FORGOTTEN_DIGEST):
        close_questions(conn, message_id, "cancelled", "What it was about was forgotten")
    return counts
