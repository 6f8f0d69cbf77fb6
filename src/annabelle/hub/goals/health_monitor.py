"""Keeps agents healthy: ends what hangs, tries again what waits, and clears away what is over (AGE-10)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from annabelle.agents.goal import rest_if_done
from annabelle.agents.task import LONGEST_PAUSE, TASKS, cancel_task, complete_task, retry_task, wait_for_agent
from annabelle.core.clock import Clock
from annabelle.core.contract import TurnResult
from annabelle.core.errors import AgentPaused, TurnCancelled
from annabelle.core.messages import OWNER
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.conversations.event_log import EventLog, WriteResult
from annabelle.hub.conversations.message_workflow import deliver
from annabelle.hub.conversations.turn_canceller import TurnCanceller
from annabelle.store import claims, goals, messages, skills, tasks
from annabelle.store.claims import HeldClaim
from annabelle.store.database import Database
from annabelle.store.tasks import StoredTask

NAME: Final = "Agent Health"
"""Of the default skill that runs it."""
STUCK_AFTER: Final = timedelta(minutes=30)
STALE_TASK: Final = timedelta(hours=2)
STALE_GOAL: Final = timedelta(hours=6)
PAUSED_FOR: Final = timedelta(hours=24)
KEPT_FOR: Final = timedelta(days=15)
_FIRES_KEPT: Final = timedelta(days=1)
_STUCK: Final = "It hung for more than half an hour and was stopped."


@dataclass(frozen=True, slots=True)
class HealthReport:
    """How many of each were dealt with."""

    stuck: int = 0
    stale_tasks: int = 0
    stale_goals: int = 0
    retried: int = 0
    expired: int = 0
    removed: int = 0

    def describe(self) -> str:
        """In a sentence for each; empty if nothing was to be done."""
        found = {
            "{} turns that hung were stopped.": self.stuck,
            "{} tasks that nobody worked on were ended.": self.stale_tasks,
            "{} goals that nothing was done for wait again.": self.stale_goals,
            "{} tasks were tried again.": self.retried,
            "{} tasks that waited for too long were cancelled.": self.expired,
            "{} old tasks were cleared away.": self.removed,
        }
        return " ".join(text.format(count) for text, count in found.items() if count)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthMonitor:
    database: Database
    events: EventLog
    clock: Clock
    canceller: TurnCanceller
    thread_queue: ThreadQueue
    agents: AgentManager

    async def report(self, _fire_id: str, _at: datetime) -> str:
        """As work of a skill: the person hears only of what hung."""
        found = await self.run()
        return HealthReport(stuck=found.stuck).describe()

    async def run(self) -> HealthReport:
        at = self.clock.now()
        stuck = await self._stop_stuck(at)
        retried = await self._retry_paused(at)
        expired = await self._expire_paused(at)

        def tidy(conn: Connection) -> tuple[int, int, int]:
            ended = [one for one in tasks.list_in_state(conn, "active", at - STALE_TASK) if _is_abandoned(conn, one)]
            for task in ended:
                complete_task(conn, task, "It ended without a result.", "trusted", at)
            resting = goals.list_working_goals(conn, at - STALE_GOAL)
            for goal in resting:
                rest_if_done(conn, goal.id)
            waiting = sum(goals.find_goal(conn, goal.id) != goal for goal in resting)
            own = next((one for one in skills.list_skills(conn, OWNER) if one.name == NAME), None)
            if own is not None:
                skills.remove_old_fires(conn, own.id, at - _FIRES_KEPT)
            return len(ended), waiting, tasks.remove_ended_tasks(conn, at - KEPT_FOR)

        stale_tasks, stale_goals, removed = await self.database.write(tidy)
        return HealthReport(
            stuck=stuck,
            stale_tasks=stale_tasks,
            stale_goals=stale_goals,
            retried=retried,
            expired=expired,
            removed=removed,
        )

    async def _stop_stuck(self, at: datetime) -> int:
        held = await self.database.read(lambda conn: claims.list_held_claims(conn, at - STUCK_AFTER))
        for claim in held:
            await self.canceller.cancel(claim.message_id, claim.user_id)
            await self._release(claim)
            await self.thread_queue.finish_message(claim.message_id)
        return len(held)

    async def _release(self, claim: HeldClaim) -> None:
        """End a turn for which nothing runs any more, so that its thread is free. One that has ended stays as it is."""
        stopped = TurnResult(message_id=claim.message_id, success=False, error=TurnCancelled(_STUCK).body())

        def write(conn: Connection) -> WriteResult[None]:
            ended = deliver(conn, claim.message_id, stopped, remember=False, at=self.clock.now())
            return WriteResult(None, claim.user_id, ended.events)

        await self.events.transact(write)

    async def _retry_paused(self, at: datetime) -> int:
        def retry(conn: Connection) -> list[str]:
            due = [one for one in tasks.list_in_state(conn, "paused") if _is_due(one, at)]
            threads: list[str] = []
            for one in due:
                if (pause := self._find_pause(one)) is not None:
                    wait_for_agent(conn, one, pause.body().for_person, at)
                elif one.waits_for_agent:
                    threads.append(retry_task(conn, one, at))  # how long its agent was paused does not count
                elif at - one.begun_at < PAUSED_FOR:
                    threads.append(retry_task(conn, one))
            return threads

        begun = await self.database.write(retry)
        for thread_id in begun:
            await self.thread_queue.start_next(thread_id)
        return len(begun)

    async def _expire_paused(self, at: datetime) -> int:
        def list_old(conn: Connection) -> list[StoredTask]:
            old = tasks.list_in_state(conn, "paused", at - PAUSED_FOR)
            return [one for one in old if one.waits_for_person or not self._waits_for_agent(one)]

        found = await self.database.read(list_old)
        count = 0
        for user_id in dict.fromkeys(task.user_id for task in found):  # events are published to one person at a time

            def expire(conn: Connection, user_id: str = user_id) -> WriteResult[list[StoredTask]]:
                old = [one for one in list_old(conn) if one.user_id == user_id]
                told = [event for one in old for event in cancel_task(conn, one, "It waited for more than a day.", at)]
                return WriteResult(old, user_id, told)

            expired = await self.events.transact(expire)
            count += len(expired)
            for task in expired:
                await self.canceller.stop_chat(TASKS, task.id, user_id)
        return count

    def _find_pause(self, task: StoredTask) -> AgentPaused | None:
        return self.agents.find_pause(task.agent_id or "")

    def _waits_for_agent(self, task: StoredTask) -> bool:
        return task.waits_for_agent or self._find_pause(task) is not None


def _is_due(task: StoredTask, at: datetime) -> bool:
    """A pause that is longer than any was made before the clock was set back."""
    return task.next_try_at is not None and not at < task.next_try_at <= at + LONGEST_PAUSE


def _is_abandoned(conn: Connection, task: StoredTask) -> bool:
    return not messages.has_unfinished(conn, TASKS, task.id)
