"""Runs the fires of skills that are one call (SKL-02).

A workflow is not needed for them: the row says that a fire is still to be done, and the journal of calls repeats the
result of a call that was made (DUR-03). So whatever is open is run, and after a crash it is run again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.clock import Clock
from annabelle.core.errors import AnnabelleError, NotFound, StorageTrouble, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.base import HubLifecycle
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.store import skills, threads
from annabelle.store.database import Database
from annabelle.store.skills import StoredFire, StoredSkill
from annabelle.store.threads import Thread

_log = logging.getLogger(__name__)
T = TypeVar("T")
AT_ONCE: Final = 8
"""Fires that run beside each other, so that conversations keep the machine."""
_TROUBLE_SECONDS: Final = 1.0
EndFire = Callable[[StoredFire, ToolResult], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class _BegunFire:
    fire: StoredFire
    skill: StoredSkill | None
    thread: Thread | None
    """None once they were deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectCallDeps:
    database: Database
    access: ToolAccess
    agents: AgentManager
    lifecycle: HubLifecycle
    maintenance: MaintenanceGate
    clock: Clock


class DirectFires:
    def __init__(self, deps: DirectCallDeps, end: EndFire) -> None:
        self._deps, self._end = deps, end
        self._lane, self._tasks = asyncio.Semaphore(AT_ONCE), BackgroundTasks()
        self._running: set[str] = set()

    def run(self, fire_ids: Iterable[str]) -> None:
        """Run these in the background, but for those that run already."""
        for fire_id in fire_ids:
            if fire_id not in self._running:
                self._running.add(fire_id)
                self._tasks.start(self._run(fire_id))

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _run(self, fire_id: str) -> None:
        try:
            await self._deps.lifecycle.wait_ready()
            async with self._lane, self._deps.maintenance.working():
                begun = await _insist(
                    fire_id, lambda: self._deps.database.write(lambda conn: self._begin(conn, fire_id))
                )
                if not begun.fire.open:
                    return
                failpoint("hub.after_fire_begun")
                result = await self._call_safely(begun)
                failpoint("hub.after_fire_work")
                await _insist(fire_id, lambda: self._end(begun.fire, result))
        except Exception:  # noqa: BLE001  nobody waits for this task
            _log.exception("%s could not be run", fire_id)
        finally:
            self._running.discard(fire_id)

    def _begin(self, conn: Connection, fire_id: str) -> _BegunFire:
        fire = skills.begin_fire(conn, fire_id, self._deps.clock.now()) or skills.load_fire(conn, fire_id)
        skill = skills.load_skill(conn, fire.skill_id)
        thread = None if skill is None else threads.find_thread(conn, skill.thread_id)
        return _BegunFire(fire, skill, thread)

    async def _call_safely(self, begun: _BegunFire) -> ToolResult:
        """What came of the call, whatever went wrong."""
        try:
            return await self._call(begun)
        except AnnabelleError as error:
            return ToolResult.failure(error.body())
        except Exception as error:  # noqa: BLE001  the edge where foreign work runs; a fire must have an outcome
            _log.exception("The call of %s failed unexpectedly", begun.fire.id)
            unexpected = AnnabelleError(f"It failed unexpectedly: {type(error).__name__}: {error}.")
            return ToolResult.failure(unexpected.body())

    async def _call(self, begun: _BegunFire) -> ToolResult:
        skill, thread, deps = begun.skill, begun.thread, self._deps
        if skill is None or skill.plan is None:
            raise NotFound("The skill was deleted.")
        if thread is None:
            raise NotFound("The conversation it reports to was deleted.")
        context = CallContext(
            caller="agent",
            agent_id=skill.agent_id,
            user_id=skill.user_id,
            thread_id=thread.id,
            chat_id=thread.chat_id,
            channel=thread.channel,
            call_id=f"{begun.fire.id}:0",
        )
        deps.agents.check_paused(skill.agent_id)
        tool, arguments = str(skill.plan["tool"]), cast("JsonObject", skill.plan["arguments"])
        deps.access.check_user(context, tool)
        return await deps.access.toolbox.call(tool, arguments, context, deps.agents.registry.policy_of(context))


async def _insist(fire_id: str, write: Callable[[], Awaitable[T]]) -> T:
    """Try until it is written: the disk may be full, or the database server away."""
    while True:
        try:
            return await write()
        except (StorageTrouble, Unavailable) as trouble:
            _log.error("%s cannot go on yet: %s", fire_id, trouble.message)
            await asyncio.sleep(_TROUBLE_SECONDS)
