"""Carries out fires, each in a task of its own.

No workflow is needed for it: the row says that a fire is still to be done, the journal of calls repeats the result of
a call that was made (DUR-03), and a run is queued once. So whatever is open is carried out, and after a crash again.
A skill of one call is carried out here, without a model (SKL-02). Any other becomes a message in a thread of its own,
whose turn ends the fire (SKL-03).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, NotFound, SecurityBlocked, StorageTrouble, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.base import HubBase
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.hub.skills.fire_outcome import FireOutcome
from annabelle.hub.skills.skill_run import queue_run
from annabelle.hub.skills.system_work import SystemWork
from annabelle.skills.preflight import fill_window, has_entries
from annabelle.store import skills, threads
from annabelle.store.database import Database
from annabelle.store.skills import StoredFire, StoredSkill
from annabelle.store.threads import Thread
from annabelle.toolbox.guard import ScanSubject

_log = logging.getLogger(__name__)
T = TypeVar("T")
AT_ONCE: Final = 8
"""Fires that run beside each other, so that conversations keep the machine."""
_TROUBLE_SECONDS: Final = 1.0
EndFire = Callable[[StoredFire, FireOutcome], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _BegunFire:
    fire: StoredFire
    skill: StoredSkill | None
    thread: Thread | None
    """None once they were deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FireTaskDeps:
    database: Database
    access: ToolAccess
    agents: AgentManager
    maintenance: MaintenanceGate
    thread_queue: ThreadQueue
    system_work: SystemWork


class FireTasks:
    def __init__(self, base: HubBase, deps: FireTaskDeps, end: EndFire) -> None:
        self._base, self._deps, self._end = base, deps, end
        self._lane, self._tasks = asyncio.Semaphore(AT_ONCE), BackgroundTasks()
        self._running: set[str] = set()
        self._spacing, self._next_run = asyncio.Lock(), 0.0

    def run(self, fire_ids: Iterable[str]) -> None:
        """Carry these out in the background, but for those under way."""
        for fire_id in fire_ids:
            if fire_id not in self._running:
                self._running.add(fire_id)
                self._tasks.start(self._run(fire_id))

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _run(self, fire_id: str) -> None:
        try:
            await self._base.lifecycle.wait_ready()
            async with self._lane, self._deps.maintenance.working():
                begun = await _insist(
                    fire_id, lambda: self._deps.database.write(lambda conn: self._begin(conn, fire_id))
                )
                if not begun.fire.open:
                    return
                failpoint("hub.after_fire_begun")
                outcome = await self._work_safely(begun)
                failpoint("hub.after_fire_work")
                if outcome is not None:
                    await _insist(fire_id, lambda: self._end(begun.fire, outcome))
        except Exception:  # noqa: BLE001  nobody waits for this task
            _log.exception("%s could not be run", fire_id)
        finally:
            self._running.discard(fire_id)

    def _begin(self, conn: Connection, fire_id: str) -> _BegunFire:
        fire = skills.begin_fire(conn, fire_id, self._base.clock.now()) or skills.load_fire(conn, fire_id)
        skill = skills.load_skill(conn, fire.skill_id)
        thread = None if skill is None else threads.find_thread(conn, skill.thread_id)
        return _BegunFire(fire, skill, thread)

    async def _work_safely(self, begun: _BegunFire) -> FireOutcome | None:
        """What came of it, whatever went wrong; None if a model carries it out."""
        try:
            return await self._work(begun)
        except AnnabelleError as error:
            return FireOutcome.from_error(error.body())
        except Exception as error:  # noqa: BLE001  the edge where foreign work runs; a fire must have an outcome
            _log.exception("%s failed unexpectedly", begun.fire.id)
            unexpected = AnnabelleError(f"It failed unexpectedly: {type(error).__name__}: {error}.")
            return FireOutcome.from_error(unexpected.body())

    async def _work(self, begun: _BegunFire) -> FireOutcome | None:
        fire, skill = begun.fire, begun.skill
        if skill is None:
            return FireOutcome(state="skipped", text="The skill was deleted.")
        self._deps.agents.check_paused(skill.agent_id, background=True)
        if fire.payload is not None:
            await self._scan(fire, skill)
        if not await self._has_work(begun, skill):
            return FireOutcome(state="skipped", text="There was nothing to do.", told=False)
        if skill.plan is not None and (system := self._deps.system_work.get(str(skill.plan["tool"]))) is not None:
            return FireOutcome(state="finished", text=await system())
        if skill.plan is not None:
            return FireOutcome.from_call(await self._call(begun, skill, skill.plan, "0"))
        await self._space_out()
        thread_id = await _insist(fire.id, lambda: self._deps.database.write(lambda conn: queue_run(conn, fire, skill)))
        await self._deps.thread_queue.start_next(thread_id)
        return None

    async def _scan(self, fire: StoredFire, skill: StoredSkill) -> None:
        """Raises SecurityBlocked if what set it off looks like an attack."""
        guard, payload = self._deps.access.toolbox.guard, fire.payload or {}
        rules = guard.rules(skill.agent_id)
        if not rules.enabled:
            return
        about: JsonObject = {"skill_id": skill.id, "fire_id": fire.id}
        found = await guard.scan(
            str(payload["text"]), ScanSubject("message", str(payload["source"]), None, None, about), rules
        )
        if found.risk == "high":
            raise SecurityBlocked("The guardian blocked what set it off, so nothing was done.")

    async def _has_work(self, begun: _BegunFire, skill: StoredSkill) -> bool:
        """Whether the call of its pre-flight finds anything (SKL-05). If that fails, the run finds out why."""
        if skill.preflight is None:
            return True
        found = await self._call(begun, skill, fill_window(skill.preflight, self._base.clock.now()), "preflight")
        return found.is_error or has_entries(found.structured)

    async def _call(self, begun: _BegunFire, skill: StoredSkill, call: JsonObject, part: str) -> ToolResult:
        """A call that the person said yes to when they made the skill. It is made once."""
        thread, deps = begun.thread, self._deps
        if thread is None:
            raise NotFound("The conversation it reports to was deleted.")
        context = CallContext(
            caller="agent",
            agent_id=skill.agent_id,
            user_id=skill.user_id,
            thread_id=thread.id,
            chat_id=thread.chat_id,
            channel=thread.channel,
            call_id=f"{begun.fire.id}:{part}",
            confirmed=True,
        )
        tool, arguments = str(call["tool"]), cast("JsonObject", call["arguments"])
        deps.access.check_user(context, tool)
        return await deps.access.toolbox.call(tool, arguments, context, deps.agents.registry.policy_of(context))

    async def _space_out(self) -> None:
        """Runs by a model begin one after the other, so that they do not ask a provider all at once."""
        async with self._spacing:
            await asyncio.sleep(max(0.0, self._next_run - time.monotonic()))
            self._next_run = time.monotonic() + self._base.settings.skill_spacing_seconds


async def _insist(fire_id: str, write: Callable[[], Awaitable[T]]) -> T:
    """Try until it is written: the disk may be full, or the database server away."""
    while True:
        try:
            return await write()
        except (StorageTrouble, Unavailable) as trouble:
            _log.error("%s cannot go on yet: %s", fire_id, trouble.message)
            await asyncio.sleep(_TROUBLE_SECONDS)
