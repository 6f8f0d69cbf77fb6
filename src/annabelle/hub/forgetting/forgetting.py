"""Forgets a text for good, in one order that can be repeated: killed at any moment, it is finished at the next start.

While it runs no turn does: messages are let in and wait. Thinkers are stopped, because they hold sessions in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError, Conflict, StorageTrouble, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.home import Home
from annabelle.core.needle import Needle
from annabelle.core.ports import Audit
from annabelle.durable.lanes import Lanes
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.ending import end_waiting
from annabelle.hub.forgetting import audit
from annabelle.hub.forgetting.engines import Engines
from annabelle.hub.forgetting.files import own_files, remains, sweep_files
from annabelle.hub.forgetting.marker import Marker, Pending
from annabelle.hub.forgetting.memory import MatchedFact, Matches, MemoryDoor
from annabelle.hub.forgetting.places import Places
from annabelle.hub.forgetting.report import Report, places_of
from annabelle.hub.forgetting.snapshots import Snapshots
from annabelle.hub.notices import Notices
from annabelle.hub.quiet import Quiet
from annabelle.hub.turns import Turns
from annabelle.store import forgetting, open_questions
from annabelle.store.database import Database
from annabelle.store.sweep import Sweep
from annabelle.store.tables import metadata

_log = logging.getLogger(__name__)
_TOPIC = "forgetting"
STILL_SECONDS = 60.0
PASSES = 3


@dataclass(frozen=True, slots=True)
class ForgettingParts:
    """What it works with."""

    home: Home
    places: Places
    database: Database
    engines: Engines
    snapshots: Snapshots
    memory: MemoryDoor
    agents: AgentManager
    lanes: Lanes
    turns: Turns
    quiet: Quiet
    notices: Notices
    close_browser: Callable[[], Awaitable[None]]
    audit: Audit | None = None


class Forgetting:
    """One at a time."""

    def __init__(self, parts: ForgettingParts, still_seconds: float = STILL_SECONDS) -> None:
        self._parts, self._still_seconds = parts, still_seconds
        self._marker = Marker(parts.home.forgetting_file)
        self._one = asyncio.Lock()

    @property
    def begun(self) -> bool:
        """Whether an earlier process had begun something and not finished it."""
        return self._marker.read() is not None

    async def preview(self, asked: Pending) -> Report:
        """Where the text stands. Nothing is changed, and nothing of it is written down."""
        found = await self._look(asked)
        if found.places:
            return found
        left = await asyncio.to_thread(remains, self._parts.places, Needle(asked.texts))
        return Report(places_of({"remains of deleted rows": left}), own=found.own)

    async def _look(self, asked: Pending) -> Report:
        parts, needle = self._parts, Needle(asked.texts)
        looking = Sweep(needle, apply=False, user_id=asked.user_id)
        remembered = await parts.memory.matches(asked.texts, asked.user_id, asked.agent_id)
        stored = await parts.database.read(lambda conn: forgetting.forget(conn, looking))
        turns = await parts.engines.sweep(looking)
        files = await asyncio.to_thread(sweep_files, parts.places, needle, apply=False)
        copies = await parts.snapshots.holding(needle)
        own = await asyncio.to_thread(own_files, parts.places, needle)
        places = places_of(remembered.counts, stored, {"turns": turns, "backups": len(copies)}, files)
        return Report(places, remembered.facts, tuple(own))

    async def near(self, asked: Pending) -> tuple[MatchedFact, ...]:
        """Facts that mean something like it, for when it stands nowhere as it was typed."""
        return await self._parts.memory.near(asked.texts[0], asked.user_id, asked.agent_id)

    async def texts_of(self, fact_id: int, with_source: bool, user_id: str, agent_id: str) -> tuple[str, ...]:
        """What has to be forgotten for a fact to be gone."""
        return await self._parts.memory.texts_of(fact_id, with_source, user_id, agent_id)

    async def forget(self, asked: Pending) -> Report:
        """Forget for good. What fails half-way is finished at the next start, or when it is asked for again."""
        if self._one.locked():
            raise Conflict("Something is being forgotten this moment.", hint="Try again when it is done.")
        async with self._one, self._still():
            begun = self._marker.read()
            if begun is not None:
                # What an earlier try did not finish is finished along with this.
                asked = asked.model_copy(update={"texts": (*begun.texts, *asked.texts)})
            self._marker.write(asked)
            try:
                return await self._work(asked)
            except AnnabelleError:
                self._parts.notices.add(
                    _TOPIC,
                    "Something could not be forgotten everywhere yet; it is tried again at the next start.",
                    level="error",
                )
                raise

    async def resume(self) -> None:
        """At the start, before anything else runs: finish what a killed process had begun."""
        pending = self._marker.read()
        if pending is None:
            return
        _log.warning("Finishing what was being forgotten when the hub ended")
        try:
            async with self._one:
                await self._work(pending)
        except AnnabelleError as error:
            self._parts.notices.add(
                _TOPIC, f"Something could not be forgotten everywhere yet: {error.message}", level="error"
            )

    @contextlib.asynccontextmanager
    async def _still(self) -> AsyncGenerator[None]:
        """Nothing that carries people's words runs while inside."""
        parts = self._parts
        parts.lanes.hold()
        parts.quiet.hold()
        try:
            turns_over = await parts.turns.all_over(self._still_seconds)
            if not (turns_over and await parts.quiet.still(self._still_seconds)):
                raise Unavailable(
                    "Annabelle is still working on a message, so nothing was forgotten.",
                    hint="Try again when the answer is there, or stop the turn.",
                )
            async with parts.engines.suspended(), parts.agents.all_stopped():
                await parts.close_browser()
                yield
        finally:
            parts.quiet.let_go()
            await parts.lanes.let_go()

    async def _work(self, asked: Pending) -> Report:
        """Again until it stands nowhere: a log may be rotated, or a tool still answer, while others are looked at."""
        parts = self._parts
        failpoint("hub.forget_begun")
        counts, remembered = await self._pass(asked)
        facts, left = remembered.facts, await self._look(asked)
        for _ in range(PASSES - 1):
            if not left.places:
                break
            more, _remembered = await self._pass(asked)
            counts, left = counts + more, await self._look(asked)
        if left.places:
            names = ", ".join(place.name for place in left.places)
            raise StorageTrouble(f"It still stands in: {names}.", hint="Close what writes there, and try again.")
        failpoint("hub.forget_verified")
        places = places_of(*counts)
        counted = {place.name: place.count for place in places}
        hashes = await asyncio.to_thread(audit.record, parts.home, asked, counted)
        if parts.audit is not None:
            parts.audit.note("forget", {"user_id": asked.user_id, "hashes": hashes, "places": counted})
        failpoint("hub.forget_recorded")
        await asyncio.to_thread(self._marker.remove)
        parts.notices.clear(_TOPIC)
        return Report(places, facts, left.own)

    async def _pass(self, asked: Pending) -> tuple[list[Mapping[str, int]], Matches]:
        parts, needle = self._parts, Needle(asked.texts)
        sweep = Sweep(needle, apply=True, user_id=asked.user_id)
        remembered = await parts.memory.forget(asked.texts, asked.user_id, asked.agent_id)
        failpoint("hub.forget_memory_done")
        stored = await parts.database.write(lambda conn: _forget(conn, sweep))
        failpoint("hub.forget_rows_masked")
        await parts.database.compact([f'"{name}"' for name in metadata.tables])
        failpoint("hub.forget_store_done")
        turns = await parts.engines.sweep(sweep)
        failpoint("hub.forget_engines_done")
        copies = await parts.snapshots.drop(needle)
        files = await asyncio.to_thread(sweep_files, parts.places, needle, apply=True)
        failpoint("hub.forget_files_done")
        return [remembered.counts, stored, {"turns": turns, "backups": copies}, files], remembered


def _forget(conn: Connection, sweep: Sweep) -> dict[str, int]:
    """Mask the rows, and take back what was asked about them: nobody can say yes to what is masked."""
    counts = forgetting.forget(conn, sweep)
    for message_id in open_questions.forgotten(conn, forgetting.FORGOTTEN):
        end_waiting(conn, message_id, "cancelled", "What it was about was forgotten")
    return counts
