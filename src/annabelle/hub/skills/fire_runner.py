"""Fires skills when they are due (SKL-08, DUR-01).

Every due instant is a row before anything is done for it, and every row ends in one outcome, which is told in the
same transaction. The timer sleeps until the next row is due, and is woken when skills change.

No workflow is needed to carry a fire out: the row says that it is still to be done, the journal of calls repeats the
result of a call that was made (DUR-03), and a run is queued once. So whatever is open is carried out, and after a crash
again. A skill of one call is carried out here, without a model (SKL-02). Any other becomes a message in a thread of its
own, whose turn ends the fire (SKL-03).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.agents.fire_outcome import FireOutcome, end_fire, tell
from annabelle.agents.work import queue_run
from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, NotAllowed, NotFound, SecurityBlocked
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import StoredEvent
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.halts import SCHEDULER
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.base import HubBase, HubStorage, write_until_stored
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.hub.skills.skill_service import SkillService, format_moment
from annabelle.hub.skills.time_zone_change import follow_time_zone
from annabelle.policy.tool_traits import READING, guess_traits
from annabelle.skills.due import plan_due
from annabelle.skills.schedule import OneMoment, read_schedule
from annabelle.skills.skill_input import MissedPolicy
from annabelle.store import skills, threads
from annabelle.store.database import Database
from annabelle.store.skills import StoredFire, StoredSkill
from annabelle.store.threads import Thread
from annabelle.toolbox.guard import ScanSubject

_log = logging.getLogger(__name__)
AT_ONCE: Final = 8
"""Fires that run beside each other, so that conversations keep the machine."""
_TROUBLE_SECONDS: Final = 1.0
EndFire = Callable[[StoredFire, FireOutcome], Awaitable[None]]
SystemWork = Callable[[str, datetime], Awaitable[str]]
"""Work on the home itself, for a fire and at a moment. It returns what the person is told; empty is nothing."""
_STORES_FACTS: Final = frozenset({"memory_store_fact", "store_fact"})
_CLAIMED: Final = 500


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
    system_work: Mapping[str, SystemWork]
    """By the name that a plan calls it."""


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
                if self._deps.agents.halts.is_halted(SCHEDULER):
                    return  # it stays open, and is taken up once the scheduler goes on
                begun = await write_until_stored(
                    fire_id, lambda: self._deps.database.write(lambda conn: self._begin(conn, fire_id))
                )
                if begun is None or not begun.fire.open:
                    return
                failpoint("hub.after_fire_begun")
                outcome = await self._work_safely(begun)
                failpoint("hub.after_fire_work")
                if outcome is not None:
                    await write_until_stored(fire_id, lambda: self._end(begun.fire, outcome))
        except Exception:  # noqa: BLE001  nobody waits for this task
            _log.exception("%s could not be run", fire_id)
        finally:
            self._running.discard(fire_id)

    def _begin(self, conn: Connection, fire_id: str) -> _BegunFire | None:
        """None if it waits until its agent goes on: what comes only once would be lost otherwise."""
        skill = skills.load_skill_of_fire(conn, fire_id)
        if skill is not None and skill.comes_once and self._deps.agents.is_held(skill.agent_id):
            return None
        fire = skills.begin_fire(conn, fire_id, self._base.lifecycle.clock.now()) or skills.load_fire(conn, fire_id)
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
        if not self._deps.access.users.is_known(skill.user_id):
            return FireOutcome(state="skipped", text="Its person was removed.", told=False)
        self._deps.agents.check_paused(skill.agent_id, background=True)
        if fire.content is not None:
            await self._scan(fire.content, fire, skill)
        if not await self._has_work(begun, skill):
            return FireOutcome(state="skipped", text="There was nothing to do.", told=False)
        if skill.plan is not None and (system := self._deps.system_work.get(str(skill.plan["tool"]))) is not None:
            return FireOutcome(state="finished", text=await system(fire.id, self._base.lifecycle.clock.now()))
        if skill.plan is not None:
            return FireOutcome.from_call(await self._call(begun, skill, skill.plan, "0"))
        await self._space_out()
        thread_id = await write_until_stored(
            fire.id, lambda: self._deps.database.write(lambda conn: queue_run(conn, fire, skill))
        )
        if thread_id is None:
            return FireOutcome(state="skipped", text="There is no goal to do it for.", told=False)
        await self._deps.thread_queue.start_next(thread_id)
        return None

    async def _scan(self, content: JsonObject, fire: StoredFire, skill: StoredSkill) -> None:
        """Raises SecurityBlocked if what set it off looks like an attack."""
        guard = self._deps.access.toolbox.guard
        rules = guard.rules(skill.agent_id)
        if not rules.enabled:
            return
        about: JsonObject = {"skill_id": skill.id, "fire_id": fire.id}
        found = await guard.scan(
            str(content["text"]), ScanSubject("message", str(content["source"]), None, None, about), rules
        )
        if found.risk == "high":
            raise SecurityBlocked("The guardian blocked what set it off, so nothing was done.")

    async def _has_work(self, begun: _BegunFire, skill: StoredSkill) -> bool:
        """Whether the call of its pre-flight finds anything (SKL-05). If that fails, the run finds out why."""
        if skill.preflight is None:
            return True
        self._check_reading(str(skill.preflight["tool"]), cast("JsonObject", skill.preflight["arguments"]))
        call = _fill_window(skill.preflight, self._base.lifecycle.clock.now())
        found = await self._call(begun, skill, call, "preflight")
        return found.is_error or _has_entries(found.structured)

    def _check_reading(self, tool: str, arguments: JsonObject) -> None:
        toolbox = self._deps.access.toolbox
        spec = next((one for one in toolbox.tools().tools if one.name == tool), None)
        traits = None if spec is None else toolbox.reviewed_traits(spec) or guess_traits(spec)
        if traits is not None and not set(traits.classes_of(arguments)) <= READING:
            raise NotAllowed(f"A pre-flight only looks, and {tool} does something.", hint="Give it a tool that reads.")

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


class FireRunner:
    def __init__(self, *, base: HubBase, storage: HubStorage, service: SkillService, deps: FireTaskDeps) -> None:
        self._base, self._storage, self._service, self._clock = base, storage, service, base.lifecycle.clock
        self._wake, self._tasks = asyncio.Event(), BackgroundTasks()
        self._fires, self._halts = FireTasks(base, deps, self._end), deps.agents.halts
        self._looked_at: datetime | None = None
        service.on_change(self._wake.set)
        self._halts.on_change(self._wake.set)
        deps.agents.on_resume(self._wake.set)
        storage.events.subscribe(self._on_events)

    async def start(self) -> None:
        """Fire what is due from now on, and carry out what an earlier process left."""
        await follow_time_zone(self._service, self._base.home.time_zone_file, self._base.settings.user_timezone)
        self._tasks.start(self._fire_when_due())

    async def stop(self) -> None:
        await self._tasks.stop()
        await self._fires.stop()

    def on_result(self, tool: str, arguments: JsonObject, context: CallContext) -> None:
        """A fact was stored: skills may wait for it. What a skill stores sets none off, or they would for ever."""
        fact = arguments.get("fact")
        by_skill = context.allowed_tools is not None or context.confirmed
        if tool in _STORES_FACTS and isinstance(fact, str) and not by_skill:
            self._tasks.start(self._service.fire_by_memory(context.user_id, fact))

    def _on_events(self, events: Sequence[StoredEvent]) -> None:
        """A run by a model that is over may be tried again, and what was said moves heartbeats."""
        if any(event.type == "done" for event in events):
            self._wake.set()

    async def _fire_when_due(self) -> None:
        while True:
            self._wake.clear()
            try:
                next_due = None
                # What becomes due meanwhile is written down once it goes on, by the missed policy of each skill.
                if not self._halts.is_halted(SCHEDULER):
                    next_due = await self._fire_due()
            except Exception as trouble:  # noqa: BLE001  the timer must outlive whatever one skill holds
                _log.error("Skills could not be fired: %s", trouble, exc_info=not isinstance(trouble, AnnabelleError))
                await asyncio.sleep(_TROUBLE_SECONDS)
                continue
            await self._clock.wait(self._wake, next_due)

    async def _fire_due(self) -> datetime | None:
        """Write down what is due, then begin it. What was written and not begun is begun now, too.

        Returns when the next skill is due.
        """
        at = self._clock.now()

        def claim(conn: Connection) -> WriteResult[bool]:
            due = skills.list_due_skills(conn, at, _CLAIMED)
            user_id = due[0].user_id if due else ""  # of one person at a time, because events are published to one
            own = [skill for skill in due if skill.user_id == user_id]
            told = [event for skill in own for event in self._claim_safely(conn, skill, at)]
            return WriteResult(len(own) < len(due) or len(due) == _CLAIMED, user_id, told)

        if self._looked_at is None or at < self._looked_at:
            await self._storage.database.write(lambda conn: _correct_times(conn, at))
        self._looked_at = at
        more = await self._storage.database.read(lambda conn: bool(skills.list_due_skills(conn, at, 1)))
        while more:
            more = await self._storage.events.transact(claim)
            failpoint("hub.after_due")
        to_run, next_due = await self._storage.database.read(
            lambda conn: (skills.list_fires_to_run(conn), skills.next_due_at(conn))
        )
        self._fires.run(to_run)
        return next_due

    def _claim_safely(self, conn: Connection, skill: StoredSkill, at: datetime) -> list[StoredEvent]:
        try:
            with conn.begin_nested():
                return self._claim(conn, skill, at)
        except Exception as error:  # noqa: BLE001  one skill must not keep the others from firing
            why = f"Its schedule cannot be read: {error}"
            skills.change_skill(conn, skill.id, {"enabled": False, "next_due": None, "disabled_why": why})
            return tell(conn, skill, f"“{skill.name}” is switched off now. {why}", f"unreadable:{at.isoformat()}")

    def _claim(self, conn: Connection, skill: StoredSkill, at: datetime) -> list[StoredEvent]:
        """The rows of one skill and when it is due again, in one transaction: no fire is lost or doubled."""
        schedule = read_schedule(skill.trigger)
        assert schedule is not None
        assert skill.next_due is not None
        plan = plan_due(schedule, skill.next_due, at, cast("MissedPolicy", skill.missed))
        skills.add_fires(conn, skill, plan.fires)
        missed = [due for due, state in plan.fires if state == "missed"]
        over = plan.next_due is None and len(missed) == len(plan.fires)  # else the end of its last fire says so
        skills.change_skill(conn, skill.id, {"next_due": plan.next_due} | ({"enabled": False} if over else {}))
        if skill.missed != "list" or not missed:
            return []
        zone = self._service.time_zone
        times = ", ".join(format_moment(due, zone) for due in missed[:10]) + (" and more" if len(missed) > 10 else "")
        return tell(conn, skill, f"“{skill.name}” was missed: {times}.", f"missed:{missed[-1].isoformat()}")

    async def _end(self, fire: StoredFire, outcome: FireOutcome) -> None:
        at = self._clock.now()
        await self._storage.events.transact(
            lambda conn: WriteResult(None, fire.user_id, end_fire(conn, fire, outcome, at))
        )
        if outcome.state == "failed":
            self._wake.set()  # it may be tried again before anything else is due


def _correct_times(conn: Connection, at: datetime) -> None:
    """Where the clock was set back, skills would wait until it is as late again. An instant that was due stays done."""
    for skill in skills.list_timed_skills(conn):
        with contextlib.suppress(AnnabelleError, ValueError):  # told when it is due
            schedule = read_schedule(skill.trigger)
            sooner = None if schedule is None or isinstance(schedule, OneMoment) else schedule.next_after(at)
            if skill.enabled and sooner is not None and skill.next_due is not None and sooner < skill.next_due:
                skills.change_skill(conn, skill.id, {"next_due": sooner})


def _fill_window(preflight: JsonObject, now: datetime) -> JsonObject:
    """The call for the window that begins now."""
    until = now + timedelta(minutes=cast("int", preflight["window_minutes"]))
    times = {"{now}": now.isoformat(timespec="seconds"), "{until}": until.isoformat(timespec="seconds")}
    given = cast("JsonObject", preflight["arguments"])
    return preflight | {"arguments": {name: times.get(str(value), value) for name, value in given.items()}}


def _has_entries(structured: Mapping[str, object] | None) -> bool:
    """Whether a result lists anything. One without lists says nothing about it, so there may be."""
    lists = [cast("list[object]", value) for value in (structured or {}).values() if isinstance(value, list)]
    return not lists or any(lists)
