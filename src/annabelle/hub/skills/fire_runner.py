"""Fires skills when they are due: a timer, and a task or a durable workflow for each fire (SKL-08, DUR-01).

What is one call is run by `direct_fires`; what a model carries out is a workflow.

Every due instant is a row before anything is done for it, and every row ends in one outcome, which is told in the
same transaction. The timer sleeps until the next row is due, and is woken when skills change.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, NotFound, OutcomeUnknown, StorageTrouble, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import StoredEvent, TurnEvent
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.base import HubLifecycle, HubStorage
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.hub.skills.direct_fires import AT_ONCE, DirectCallDeps, DirectFires
from annabelle.hub.skills.skill_service import SkillService, format_moment, is_reminder
from annabelle.skills.due import plan_due, retry_after
from annabelle.skills.schedule import OneMoment, read_schedule
from annabelle.skills.skill_input import MissedPolicy
from annabelle.store import messages, skills, threads
from annabelle.store.skills import FireState, StoredFire, StoredSkill

_log = logging.getLogger(__name__)
RUN_FIRE: Final = "run_fire"
_CLAIMED: Final = 500
_TROUBLE_SECONDS: Final = 1.0
_TOLD_CHARS: Final = 4_000


class FireRunner:
    def __init__(
        self,
        *,
        storage: HubStorage,
        service: SkillService,
        access: ToolAccess,
        agents: AgentManager,
        lifecycle: HubLifecycle,
        maintenance: MaintenanceGate,
    ) -> None:
        self._storage, self._service, self._access = storage, service, access
        self._agents, self._lifecycle, self._clock = agents, lifecycle, service.clock
        self._wake, self._lane = asyncio.Event(), asyncio.Semaphore(AT_ONCE)
        self._tasks = BackgroundTasks()
        self._direct = DirectFires(
            DirectCallDeps(
                database=storage.database,
                access=access,
                agents=agents,
                lifecycle=lifecycle,
                maintenance=maintenance,
                clock=service.clock,
            ),
            self._end,
        )
        service.on_change(self._wake.set)
        storage.durable.workflow(RUN_FIRE)(self._run)

    async def start(self) -> None:
        """Take up what an earlier process left, then fire what is due from now on."""
        for fire in await self._storage.database.read(skills.list_model_fires):
            state = await self._storage.durable.status(fire.id)
            if state != "running" and not (state is None and fire.state == "due"):
                lost = OutcomeUnknown("It was interrupted, and how far it came is not known.")
                await self._end(fire, ToolResult.failure(lost.body()))
        self._tasks.start(self._fire_when_due())

    async def stop(self) -> None:
        await self._tasks.stop()
        await self._direct.stop()

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

        def claim(conn: Connection) -> WriteResult[bool]:
            due = skills.list_due_skills(conn, at, _CLAIMED)
            user_id = due[0].user_id if due else ""  # of one person at a time, because events are published to one
            own = [skill for skill in due if skill.user_id == user_id]
            told = [event for skill in own for event in self._claim_safely(conn, skill, at)]
            return WriteResult(len(own) < len(due) or len(due) == _CLAIMED, user_id, told)

        more = await self._storage.database.read(lambda conn: bool(skills.list_due_skills(conn, at, 1)))
        while more:
            more = await self._storage.events.transact(claim)
            failpoint("hub.after_due")
        self._direct.run(await self._storage.database.read(skills.list_direct_fires))
        for fire in await self._storage.database.read(skills.list_model_fires):
            if fire.state == "due":
                await self._storage.durable.start(RUN_FIRE, fire.id, {"fire_id": fire.id})

    def _claim_safely(self, conn: Connection, skill: StoredSkill, at: datetime) -> list[StoredEvent]:
        try:
            with conn.begin_nested():
                return self._claim(conn, skill, at)
        except Exception as error:  # noqa: BLE001  one skill must not keep the others from firing
            why = f"Its schedule cannot be read: {error}"
            skills.change_skill(conn, skill.id, {"enabled": False, "next_due": None, "disabled_why": why})
            return _tell(conn, skill, f"“{skill.name}” is switched off now. {why}", f"unreadable:{at.isoformat()}")

    def _claim(self, conn: Connection, skill: StoredSkill, at: datetime) -> list[StoredEvent]:
        """The rows of one skill and when it is due again, in one transaction: no fire is lost or doubled."""
        schedule = read_schedule(skill.trigger)
        assert schedule is not None
        assert skill.next_due is not None
        plan = plan_due(schedule, skill.next_due, at, cast("MissedPolicy", skill.missed))
        skills.add_fires(conn, skill, plan.fires)
        skills.change_skill(conn, skill.id, {"next_due": plan.next_due})
        missed = [due for due, state in plan.fires if state == "missed"]
        if skill.missed != "list" or not missed:
            return []
        zone = self._service.time_zone
        times = ", ".join(format_moment(due, zone) for due in missed[:10]) + (" and more" if len(missed) > 10 else "")
        return _tell(conn, skill, f"“{skill.name}” was missed: {times}.", f"missed:{missed[-1].isoformat()}")

    async def _run(self, argument: JsonObject) -> JsonObject:
        fire_id = str(argument["fire_id"])
        database = self._storage.database
        async with self._lane:
            fire = await database.read(lambda conn: skills.load_fire(conn, fire_id))
            if not fire.open:
                return {"state": fire.state}

            async def work() -> JsonObject:
                return (await self._work(fire)).model_dump(mode="json")

            try:
                at = self._clock.now()
                await database.write(lambda conn: skills.begin_fire(conn, fire_id, at))
                failpoint("hub.after_fire_begun")
                result = ToolResult.model_validate(await self._storage.durable.step("work", work))
            except AnnabelleError as error:  # whatever went wrong is the outcome
                result = ToolResult.failure(error.body())
            failpoint("hub.after_fire_work")
            while True:
                try:
                    return {"state": await self._end(fire, result)}
                except (StorageTrouble, Unavailable) as trouble:
                    _log.error("The end of %s could not be written yet: %s", fire.id, trouble.message)
                    await asyncio.sleep(_TROUBLE_SECONDS)

    async def _work(self, fire: StoredFire) -> ToolResult:
        """The call of a direct skill. No model is asked (SKL-02)."""
        await self._lifecycle.wait_ready()
        skill = await self._storage.database.read(lambda conn: skills.load_skill(conn, fire.skill_id))
        if skill is None or skill.plan is None:
            return ToolResult.failure(NotFound("The skill was deleted.").body())
        thread = await self._storage.database.read(lambda conn: threads.load_thread(conn, skill.thread_id))
        context = CallContext(
            caller="agent",
            agent_id=skill.agent_id,
            user_id=skill.user_id,
            thread_id=thread.id,
            chat_id=thread.chat_id,
            channel=thread.channel,
            call_id=f"{fire.id}:0",
        )
        try:
            self._agents.check_paused(skill.agent_id)
            tool, arguments = str(skill.plan["tool"]), cast("JsonObject", skill.plan["arguments"])
            self._access.check_user(context, tool)
            policy = self._agents.registry.policy_of(context)
            return await self._access.toolbox.call(tool, arguments, context, policy)
        except AnnabelleError as error:
            return ToolResult.failure(error.body())

    async def _end(self, fire: StoredFire, result: ToolResult) -> FireState:
        """Store the outcome, what it means for the skill, and tell the person: once, in one transaction."""
        at = self._clock.now()

        def write(conn: Connection) -> WriteResult[FireState]:
            skill = skills.load_skill(conn, fire.skill_id)
            state = "skipped" if skill is None and result.is_error else _end_state(result)
            kept: JsonObject = {"text": result.for_person[:_TOLD_CHARS], "trust": result.trust}
            if not skills.finish_fire(conn, fire.id, state, kept, at) or skill is None:
                return WriteResult(state, fire.user_id)
            told = self._settle(conn, skill, fire, result, at)
            return WriteResult(state, fire.user_id, told)

        state = await self._storage.events.transact(write)
        if result.is_error:
            self._wake.set()  # it may be tried again before anything else is due
        return state

    def _settle(
        self, conn: Connection, skill: StoredSkill, fire: StoredFire, result: ToolResult, at: datetime
    ) -> list[StoredEvent]:
        """Count failures and try again later; one-shots are over once they succeeded (SKL-04, SKL-11)."""
        if not result.is_error:
            over = isinstance(read_schedule(skill.trigger), OneMoment) and skill.next_due is None
            skills.change_skill(conn, skill.id, {"failures": 0} | ({"enabled": False} if over else {}))
            return [] if is_reminder(skill) else self._tell_result(conn, skill, fire, result, at)
        if result.is_unknown:  # it may have happened, so it is not tried again
            return _tell(conn, skill, f"“{skill.name}” was interrupted: {result.for_person}", fire.id)
        if read_schedule(skill.trigger) is None:  # it was run by hand
            return _tell(conn, skill, f"“{skill.name}” failed. {result.for_person}", fire.id)
        failures = skill.failures + 1
        wait = retry_after(failures)
        words = result.for_person
        if wait is None:
            changes: JsonObject = {"failures": failures, "enabled": False, "next_due": None, "disabled_why": words}
            skills.change_skill(conn, skill.id, changes)
            text = f"“{skill.name}” failed {failures} times and is switched off now. {words}"
            return _tell(conn, skill, text, fire.id)
        again = at + wait
        due = again if skill.next_due is None else min(skill.next_due, again)
        skills.change_skill(conn, skill.id, {"failures": failures, "next_due": due})
        return []

    def _tell_result(
        self, conn: Connection, skill: StoredSkill, fire: StoredFire, result: ToolResult, at: datetime
    ) -> list[StoredEvent]:
        if not skill.notify:
            return []
        pause = timedelta(minutes=skill.notify_interval_minutes)
        if skill.last_notified_at is not None and at - skill.last_notified_at < pause:
            return []
        skills.change_skill(conn, skill.id, {"last_notified_at": at})
        return _tell(conn, skill, result.for_person[:_TOLD_CHARS], fire.id, trust=result.trust)


def _tell(conn: Connection, skill: StoredSkill, text: str, key: str, **metadata: object) -> list[StoredEvent]:
    about: JsonObject = {"skill_id": skill.id, **metadata}
    said = messages.add_agent_message(conn, skill.thread_id, text, f"skill:{skill.id}:{key}", metadata=about)
    data: JsonObject = {"message_id": said.id, "text": text, **about}
    event = TurnEvent(message_id=said.id, key="skill", type="message", data=data)
    return threads.append_events(conn, skill.thread_id, [event])


def _end_state(result: ToolResult) -> FireState:
    if not result.is_error:
        return "finished"
    return "unknown" if result.is_unknown else "failed"
