"""Fires skills when they are due: a timer, and one durable workflow for each fire (SKL-08, DUR-01).

Every due instant is a row before anything is done for it, and every row ends in one outcome, which is told in the
same transaction. The timer sleeps until the next row is due, and is woken when skills change. A skill of one call is
carried out here, without a model (SKL-02). Any other becomes a message in a thread of its own, whose turn may call
the skill's tools and no others (SKL-03).
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, SecurityBlocked, StorageTrouble, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import StoredEvent
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.hub.skills.fire_outcome import FireOutcome, end_fire, tell
from annabelle.hub.skills.skill_run import queue_run, run_id
from annabelle.hub.skills.skill_service import SkillService, format_moment
from annabelle.skills.due import plan_due
from annabelle.skills.preflight import fill_window, has_entries
from annabelle.skills.schedule import read_schedule
from annabelle.skills.skill_input import MissedPolicy
from annabelle.store import messages, skills, threads
from annabelle.store.skills import StoredFire, StoredSkill
from annabelle.toolbox.guard import ScanSubject

_log = logging.getLogger(__name__)
RUN_FIRE: Final = "run_fire"
AT_ONCE: Final = 8
"""Fires that run beside each other, so that conversations keep the machine."""
_STORES_FACTS: Final = frozenset({"memory_store_fact", "store_fact"})
_CLAIMED: Final = 500
_TROUBLE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FireRunnerDeps:
    storage: HubStorage
    service: SkillService
    access: ToolAccess
    agents: AgentManager
    thread_queue: ThreadQueue


class FireRunner:
    def __init__(self, base: HubBase, parts: FireRunnerDeps) -> None:
        self._storage, self._service, self._access = parts.storage, parts.service, parts.access
        self._agents, self._thread_queue = parts.agents, parts.thread_queue
        self._lifecycle, self._clock = base.lifecycle, parts.service.clock
        self._wake, self._lane = asyncio.Event(), asyncio.Semaphore(AT_ONCE)
        self._space_seconds, self._spacing, self._next_run = (
            base.settings.skill_spacing_seconds, asyncio.Lock(), 0.0,
        )  # fmt: skip
        self._tasks = BackgroundTasks()
        self._service.on_change(self._wake.set)
        self._storage.durable.workflow(RUN_FIRE)(self._run)

    async def start(self) -> None:
        """Take up what an earlier process left, then fire what is due from now on."""
        for fire in await self._storage.database.read(skills.list_open_fires):
            state = await self._storage.durable.status(fire.id)
            if state == "running" or (state is None and fire.state == "due") or await self._has_turn(fire):
                continue
            lost = "It was interrupted, and how far it came is not known."
            await self._end(fire, FireOutcome(state="unknown", text=lost))
        self._tasks.start(self._fire_when_due())

    async def stop(self) -> None:
        await self._tasks.stop()

    def on_result(self, tool: str, arguments: JsonObject, context: CallContext) -> None:
        """A fact was stored: skills may wait for it. What a skill stores sets none off, or they would for ever."""
        fact = arguments.get("fact")
        by_skill = context.allowed_tools is not None or context.confirmed
        if tool in _STORES_FACTS and isinstance(fact, str) and not by_skill:
            self._tasks.start(self._service.fire_by_memory(context.user_id, fact))

    async def _has_turn(self, fire: StoredFire) -> bool:
        """Whether its run is a message, which ends it."""

        def read(conn: Connection) -> bool:
            return messages.find_message(conn, run_id(fire), fire.user_id) is not None

        return await self._storage.database.read(read)

    async def _fire_when_due(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._fire_due()
                next_due = await self._storage.database.read(skills.next_due_at)
            except Exception as trouble:  # noqa: BLE001  the timer must outlive whatever one skill holds
                _log.error("Skills could not be fired: %s", trouble, exc_info=not isinstance(trouble, AnnabelleError))
                await asyncio.sleep(_TROUBLE_SECONDS)
                continue
            await self._clock.wait(self._wake, next_due)

    async def _fire_due(self) -> None:
        """Write down what is due, then begin it. What was written and not begun is begun now, too."""
        at = self._clock.now()

        def claim(conn: Connection) -> WriteResult[int]:
            due = skills.list_due_skills(conn, at, _CLAIMED)
            user_id = due[0].user_id if due else ""  # of one person at a time, because events are published to one
            told = [event for skill in due if skill.user_id == user_id for event in self._claim_safely(conn, skill, at)]
            return WriteResult(len(due), user_id, told)

        while await self._storage.database.read(lambda conn: bool(skills.list_due_skills(conn, at, 1))):
            await self._storage.events.transact(claim)
            failpoint("hub.after_due")
        for fire in await self._storage.database.read(skills.list_open_fires):
            if fire.state == "due":
                await self._storage.durable.start(RUN_FIRE, fire.id, {"fire_id": fire.id})

    def _claim_safely(self, conn: Connection, skill: StoredSkill, at: datetime) -> list[StoredEvent]:
        try:
            with conn.begin_nested():
                return self._claim(conn, skill, at)
        except Exception as error:  # noqa: BLE001  one skill must not keep the others from firing
            why = f"Its schedule cannot be read: {error}"
            skills.update_skill(conn, skill.id, {"enabled": False, "next_due": None, "disabled_why": why})
            return tell(conn, skill, f"“{skill.name}” is switched off now. {why}", f"unreadable:{at.isoformat()}")

    def _claim(self, conn: Connection, skill: StoredSkill, at: datetime) -> list[StoredEvent]:
        """The rows of one skill and when it is due again, in one transaction: no fire is lost or doubled."""
        schedule = read_schedule(skill.trigger)
        assert schedule is not None
        assert skill.next_due is not None
        plan = plan_due(schedule, skill.next_due, at, cast("MissedPolicy", skill.missed))
        skills.add_fires(conn, skill, plan.fires)
        skills.update_skill(conn, skill.id, {"next_due": plan.next_due})
        missed = [due for due, state in plan.fires if state == "missed"]
        if skill.missed != "list" or not missed:
            return []
        zone = self._service.time_zone
        times = ", ".join(format_moment(due, zone) for due in missed[:10]) + (" and more" if len(missed) > 10 else "")
        return tell(conn, skill, f"“{skill.name}” was missed: {times}.", f"missed:{missed[-1].isoformat()}")

    async def _run(self, argument: JsonObject) -> JsonObject:
        fire_id = str(argument["fire_id"])
        database = self._storage.database
        async with self._lane:
            fire = await database.read(lambda conn: skills.load_fire(conn, fire_id))
            if not fire.open:
                return {"state": fire.state}
            skill = await database.read(lambda conn: skills.load_skill(conn, fire.skill_id))

            async def work() -> JsonObject:
                return (await self._work(fire, skill)).model_dump(mode="json")

            try:
                at = self._clock.now()
                await database.write(lambda conn: skills.begin_fire(conn, fire_id, at))
                failpoint("hub.after_fire_begun")
                outcome = FireOutcome.model_validate(await self._storage.durable.step("work", work))
            except AnnabelleError as error:  # whatever went wrong is the outcome
                outcome = FireOutcome.from_error(error.body())
            failpoint("hub.after_fire_work")
            while True:
                try:
                    return {"state": await self._settle(fire, skill, outcome)}
                except (StorageTrouble, Unavailable) as trouble:
                    _log.error("The end of %s could not be written yet: %s", fire.id, trouble.message)
                    await asyncio.sleep(_TROUBLE_SECONDS)

    async def _work(self, fire: StoredFire, skill: StoredSkill | None) -> FireOutcome:
        """Look whether there is anything to do, and make the call of a skill that needs no model."""
        await self._lifecycle.wait_ready()
        if skill is None:
            return FireOutcome(state="skipped", text="The skill was deleted.")
        try:
            self._agents.check_paused(skill.agent_id, background=True)
            if fire.payload is not None:
                await self._scan(fire, skill)
            if not await self._has_work(fire, skill):
                return FireOutcome(state="skipped", text="There was nothing to do.", told=False)
            if skill.plan is None:
                return FireOutcome(state="begun")
            return FireOutcome.from_call(await self._call(fire, skill, skill.plan, "0"))
        except AnnabelleError as error:
            return FireOutcome.from_error(error.body())

    async def _scan(self, fire: StoredFire, skill: StoredSkill) -> None:
        """Raises SecurityBlocked for what a webhook brought if it looks like an attack."""
        guard = self._access.toolbox.guard
        rules, payload = guard.rules(skill.agent_id), fire.payload or {}
        if not rules.enabled:
            return
        about: JsonObject = {"skill_id": skill.id, "fire_id": fire.id}
        subject = ScanSubject("message", str(payload["source"]), None, None, about)
        found = await guard.scan(str(payload["text"]), subject, rules)
        if found.risk == "high":
            raise SecurityBlocked("The guardian blocked what set it off, so nothing was done.")

    async def _has_work(self, fire: StoredFire, skill: StoredSkill) -> bool:
        """Whether the call of its pre-flight finds anything (SKL-05). If that fails, the run finds out why."""
        if skill.preflight is None:
            return True
        found = await self._call(fire, skill, fill_window(skill.preflight, self._clock.now()), "preflight")
        return found.is_error or has_entries(found.structured)

    async def _call(self, fire: StoredFire, skill: StoredSkill, call: JsonObject, part: str) -> ToolResult:
        thread = await self._storage.database.read(lambda conn: threads.load_thread(conn, skill.thread_id))
        context = CallContext(
            caller="agent",
            agent_id=skill.agent_id,
            user_id=skill.user_id,
            thread_id=thread.id,
            chat_id=thread.chat_id,
            channel=thread.channel,
            call_id=f"{fire.id}:{part}",
            confirmed=True,
        )
        tool, arguments = str(call["tool"]), cast("JsonObject", call["arguments"])
        self._access.check_user(context, tool)
        policy = self._agents.registry.policy_of(context)
        return await self._access.toolbox.call(tool, arguments, context, policy)

    async def _settle(self, fire: StoredFire, skill: StoredSkill | None, outcome: FireOutcome) -> str:
        if outcome.state != "begun" or skill is None:
            await self._end(fire, outcome)
            return outcome.state
        await self._space_out()
        thread_id = await self._storage.database.write(lambda conn: queue_run(conn, fire, skill))
        failpoint("hub.after_fire_queued")
        await self._thread_queue.start_next(thread_id)
        return "started"

    async def _space_out(self) -> None:
        """Runs by a model begin one after the other, so that they do not ask a provider all at once."""
        async with self._spacing:
            await asyncio.sleep(max(0.0, self._next_run - time.monotonic()))
            self._next_run = time.monotonic() + self._space_seconds

    async def _end(self, fire: StoredFire, outcome: FireOutcome) -> None:
        at = self._clock.now()
        await self._storage.events.transact(
            lambda conn: WriteResult(None, fire.user_id, end_fire(conn, fire, outcome, at))
        )
        self._wake.set()
