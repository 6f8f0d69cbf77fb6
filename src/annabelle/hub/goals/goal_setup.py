"""Makes the services of goals."""

from __future__ import annotations

from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.base import HubStorage
from annabelle.hub.conversations.turn_canceller import TurnCanceller
from annabelle.hub.goals.goal_service import GoalService
from annabelle.hub.goals.health_monitor import HealthMonitor
from annabelle.hub.goals.note_service import NoteService
from annabelle.hub.skills.skill_service import SkillService
from annabelle.hub.trust.rules import StandingRules


def make_goals(
    *,
    storage: HubStorage,
    skills: SkillService,
    notes: NoteService,
    thread_queue: ThreadQueue,
    canceller: TurnCanceller,
    rules: StandingRules,
    agents: AgentManager,
) -> tuple[GoalService, HealthMonitor]:
    goals = GoalService(
        database=storage.database,
        clock=skills.clock,
        time_zone=skills.time_zone,
        thread_queue=thread_queue,
        canceller=canceller,
        notes=notes,
        rules=rules,
    )
    goals.on_change(skills.notify)
    notes.on_note(goals.after_note)
    notes.on_change(goals.notify)
    health = HealthMonitor(
        database=storage.database,
        events=storage.events,
        clock=skills.clock,
        canceller=canceller,
        thread_queue=thread_queue,
        agents=agents,
    )
    return goals, health
