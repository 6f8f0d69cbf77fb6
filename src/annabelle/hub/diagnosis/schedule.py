"""Checks of what runs by itself: skills on a schedule, tasks and the queue."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError
from annabelle.hub.diagnosis.check import Check, DiagnosisContext, Problem
from annabelle.skills.schedule import OneMoment, read_schedule
from annabelle.store import messages, skills, tasks
from annabelle.store.skills import StoredFire, StoredSkill

NEVER_RAN: Final = timedelta(hours=2)
FAILED_WITHIN: Final = timedelta(hours=6)
QUEUE_ENTRIES: Final = 1_000
_LOOK: Final = "/cron shows it."
TimedSkill = tuple[StoredSkill, StoredFire | None]
"""A skill on a schedule, and its newest fire that was begun or passed over."""


async def check_stale(context: DiagnosisContext) -> list[Problem]:
    timed = await context.query(_list_timed, ())
    return [
        Problem("warning", f"“{skill.name}” did not run when it was due.", _LOOK, skill.name)
        for skill, last in timed
        if skill.enabled and _is_stale(skill, last, context.at)
    ]


def _list_timed(conn: Connection) -> Iterable[TimedSkill]:
    return [(skill, skills.find_newest_fire(conn, skill.id)) for skill in skills.list_timed_skills(conn)]


def _is_stale(skill: StoredSkill, last: StoredFire | None, at: datetime) -> bool:
    """Whether it is silent for more than two of its intervals, or has never run although it was due.

    A change of the skill counts as a run: it may have been switched on, or have another schedule since.
    """
    try:
        schedule = read_schedule(skill.trigger)
    except AnnabelleError:
        return True
    if schedule is None:
        return False
    since = max(skill.updated_at, last.due_at) if last is not None else skill.created_at
    if isinstance(schedule, OneMoment):
        return last is None and at > max(schedule.at, since + NEVER_RAN)
    first = schedule.next_after(since)
    second = None if first is None else schedule.next_after(first)
    if first is None or second is None:
        return False
    interval = second - first
    return at > (since + 2 * interval if last is not None else max(since + NEVER_RAN, first + interval))


async def check_failed_skills(context: DiagnosisContext) -> list[Problem]:
    timed = await context.query(_list_timed, ())
    return [
        Problem("warning", f"“{skill.name}” failed the last time.", _LOOK, skill.name)
        for skill, last in timed
        if last is not None and last.state == "failed"
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
        "a skill that is switched on did not run for more than twice its interval, or has never run 2 h after it was"
        " made and an interval after it was due",
        check_stale,
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
