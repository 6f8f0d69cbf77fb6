"""The services of a hub, for commands and request handlers."""

from __future__ import annotations

from dataclasses import dataclass, field

from annabelle.hub.approvals.approval_answer import ApprovalService
from annabelle.hub.costs.ledger import CostLedger
from annabelle.hub.diagnosis.diagnosis import Diagnosis
from annabelle.hub.goals.goal_service import GoalService
from annabelle.hub.goals.health_monitor import HealthMonitor
from annabelle.hub.google_sign_in import GoogleSignIn
from annabelle.hub.memory.service import HubMemory
from annabelle.hub.model_downloads import ModelDownloads
from annabelle.hub.skills.skill_service import SkillService
from annabelle.hub.tasks.task_runner import TaskRunner
from annabelle.hub.trust.rules import StandingRules


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What looks after this install: the costs, the checks, the monitor of agents, models that are fetched, and
    a sign-in at Google."""

    ledger: CostLedger
    diagnosis: Diagnosis
    health: HealthMonitor
    downloads: ModelDownloads
    sign_in: GoogleSignIn = field(default_factory=GoogleSignIn)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubServices:
    approvals: ApprovalService
    rules: StandingRules
    skills: SkillService
    goals: GoalService
    tasks: TaskRunner
    memory: HubMemory
    upkeep: Upkeep
