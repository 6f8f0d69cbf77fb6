"""Checks of what runs by itself: skills on a schedule, tasks and the queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError
from annabelle.hub.diagnosis.check import Check, DiagnosisContext, Problem
from annabelle.skills.schedule import read_schedule
from annabelle.store import messages, skills, tasks
from annabelle.store.skills import StoredFire, StoredSkill

NEVER_RAN: Final = timedelta(hours=2)
FAILED_WITHIN: Final = timedelta(hours=6)
QUEUE_ENTRIES: Final = 1_000
_LOOK: Final = "/cron shows it."


@dataclass(frozen=True, slots=True)
class TimedSkill:
    """A skill on a schedule, its newest fire that was begun or passed over, and since when one waits to begin."""

    skill: StoredSkill
    last: StoredFire | None
    waiting_since: datetime | None

    def is_stale(self, at: datetime) -> bool:
        """Whether it is an interval late, which is two after it last ran. One that has never run has two hours."""
        overdue = [moment for moment in (self.waiting_since, self.skill.next_due) if moment is not None]
        if not self.skill.enabled or not overdue:
            return False
        try:
            schedule = read_schedule(self.skill.trigger)
        except (AnnabelleError, ValueError):
            return True
        due = min(overdue)
        following = None if schedule is None else schedule.next_after(due)
        late = at > (following or due)
        return late and (self.last is not None or at > self.skill.created_at + NEVER_RAN)


def _list_timed(conn: Connection) -> list[TimedSkill]:
    return [
        TimedSkill(skill, skills.find_newest_fire(conn, skill.id), skills.waiting_since(conn, skill.id))
        for skill in skills.list_timed_skills(conn)
    ]


async def check_stale(context: DiagnosisContext) -> list[Problem]:
    return [
        Problem("warning", f"“{timed.skill.name}” did not run when it was due.", _LOOK, timed.skill.name)
        for timed in await context.query(_list_timed, [])
        if timed.is_stale(context.at)
    ]


async def check_failed_skills(context: DiagnosisContext) -> list[Problem]:
    return [
        Problem("warning", f"“{timed.skill.name}” failed the last time.", _LOOK, timed.skill.name)
        for timed in await context.query(_list_timed, [])
        if timed.last is not None and timed.last.state == "failed"
    ]


async def check_tasks(context: DiagnosisContext) -> list[Problem]:
    failed = await context.query(lambda conn: tasks.count_failed_since(conn, context.at - FAILED_WITHIN), 0)
    if not failed:
        return []
    what = "A task" if failed == 1 else f"{failed} tasks"
    return [Problem("warning", f"{what} failed in the last six hours.", "At the terminal: annabelle tasks")]


async def check_queue(context: DiagnosisContext) -> list[Problem]:
    waiting = await context.query(_count_waiting, 0)
    if waiting < QUEUE_ENTRIES:
        return []
    return [Problem("info", f"{waiting} messages, tasks and fires wait for their turn.", "/status shows what runs.")]


def _count_waiting(conn: Connection) -> int:
    return messages.count_queued(conn) + tasks.count_open(conn) + skills.count_open_fires(conn)


CHECKS: Final = (
    Check(
        "stale-cron-jobs",
        "schedule",
        ("warning",),
        "a skill that is switched on did not run for more than twice its interval, or has never run an interval after"
        " it was due and 2 h after it was made",
        check_stale,
        needs_hub=True,
    ),
    Check(
        "failed-cron-skills",
        "schedule",
        ("warning",),
        "a skill on a schedule failed the last time",
        check_failed_skills,
    ),
    Check("failed-tasks", "schedule", ("warning",), "a task failed in the last 6 h", check_tasks),
    Check(
        "job-queue-depth",
        "schedule",
        ("info",),
        f"{QUEUE_ENTRIES:,} or more messages, tasks and fires of skills wait",
        check_queue,
    ),
)
