"""Fires skills when they are due (SKL-08, DUR-01).

Every due instant is a row before anything is done for it, and every row ends in one outcome, which is told in the
same transaction. The timer sleeps until the next row is due, and is woken when skills change.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import StoredEvent
from annabelle.core.tools import CallContext, JsonObject
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.skills.fire_outcome import FireOutcome, end_fire, tell
from annabelle.hub.skills.fire_tasks import FireTaskDeps, FireTasks
from annabelle.hub.skills.skill_service import SkillService, format_moment
from annabelle.skills.due import plan_due
from annabelle.skills.schedule import read_schedule
from annabelle.skills.skill_input import MissedPolicy
from annabelle.store import skills
from annabelle.store.skills import StoredFire, StoredSkill

_log = logging.getLogger(__name__)
_STORES_FACTS: Final = frozenset({"memory_store_fact", "store_fact"})
_CLAIMED: Final = 500
_TROUBLE_SECONDS: Final = 1.0


class FireRunner:
    def __init__(self, base: HubBase, storage: HubStorage, service: SkillService, deps: FireTaskDeps) -> None:
        self._storage, self._service, self._clock = storage, service, base.clock
        self._wake, self._tasks = asyncio.Event(), BackgroundTasks()
        self._fires = FireTasks(base, deps, self._end)
        service.on_change(self._wake.set)

    async def start(self) -> None:
        """Fire what is due from now on, and carry out what an earlier process left."""
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
        self._fires.run(await self._storage.database.read(skills.list_fires_to_run))

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
        skills.change_skill(conn, skill.id, {"next_due": plan.next_due})
        missed = [due for due, state in plan.fires if state == "missed"]
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
