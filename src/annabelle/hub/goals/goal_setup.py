"""Makes the services of goals."""

from __future__ import annotations

from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.base import HubLifecycle, HubStorage
from annabelle.hub.conversations.turn_canceller import TurnCanceller
from annabelle.hub.goals.goal_service import GoalService
from annabelle.hub.goals.health_monitor import HealthMonitor
from annabelle.hub.skills.skill_service import SkillService


def make_goals(
    *,
    storage: HubStorage,
    lifecycle: HubLifecycle,
    skills: SkillService,
    thread_queue: ThreadQueue,
    canceller: TurnCanceller,
) -> tuple[GoalService, HealthMonitor]:
    goals = GoalService(
        database=storage.database,
        clock=lifecycle.clock,
        time_zone=skills.time_zone,
        thread_queue=thread_queue,
        canceller=canceller,
    )
    goals.on_change(skills.notify)
    health = HealthMonitor(
        database=storage.database,
        events=storage.events,
        clock=lifecycle.clock,
        canceller=canceller,
        thread_queue=thread_queue,
    )
    return goals, health
