"""Check-ins: times at which an agent looks at a goal by itself, as skills that belong to the goal (AGE-08).

One of each sort. A recurring one and a follow-up are arranged; a note of the person sets one off once they have stopped
writing; a heartbeat comes after a while without anything, the sooner the more there was to do lately.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypedDict, cast

from sqlalchemy import Connection

from annabelle.agents import is_chat
from annabelle.core.contract import TERMINAL, TERMINAL_CHAT
from annabelle.core.messages import GOALS
from annabelle.skills.schedule import OneMoment, Schedule, read_schedule
from annabelle.store import goals, messages, skills, threads
from annabelle.store.goals import StoredGoal
from annabelle.store.skills import NewSkill, StoredSkill

CheckInSort = Literal["recurring", "follow_up", "note", "heartbeat"]
MODEL_CALLS: Final = 3
SECONDS: Final = 45.0
NOTE_DELAY: Final = timedelta(minutes=15)
SHORTEST_DELAY: Final = timedelta(hours=1)
LONGEST_DELAY: Final = timedelta(days=30)
_ACTIVITY_SPAN: Final = timedelta(days=7)
_NOTE_WEIGHT: Final = 1.5
_HEARTBEATS: Final = ((5.0, timedelta(hours=12)), (2.0, timedelta(hours=48)), (0.0, timedelta(hours=120)))
"""From which activity on, how long a goal is left alone."""
_NAMES: Final[dict[CheckInSort, str]] = {
    "recurring": "Check-in: {title}",
    "follow_up": "Follow-up: {title}",
    "note": "New notes: {title}",
    "heartbeat": "Heartbeat: {title}",
}
_INTENTS: Final[dict[CheckInSort, str]] = {
    "recurring": "Your regular check-in.",
    "follow_up": "The follow-up you arranged.",
    "note": "The user wrote notes for this goal. See what follows from them.",
    "heartbeat": "Nothing has happened for a while. See whether something should.",
}


class _SkillName(TypedDict):
    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckIn:
    sort: CheckInSort
    schedule: Schedule
    intent: str = ""
    """What it is for, in the words of whoever arranged it."""
    made_after: list[str] | None = None
    """Foreign content that was read before it was arranged."""


def set_check_in(conn: Connection, goal: StoredGoal, new: CheckIn, at: datetime) -> StoredSkill:
    """Arrange a check-in of a goal in place of the one of its sort."""
    values: dict[str, object] = {
        "instructions": new.intent or _INTENTS[new.sort],
        "trigger": new.schedule.trigger,
        "next_due": new.schedule.next_after(at),
        "made_after": new.made_after,
        "enabled": True,
        "disabled_why": None,
        "failures": 0,
    }
    known = skills.find_check_in(conn, goal.user_id, new.sort, goal.id)
    if known is not None:
        skills.skip_due_fires(conn, known.id, "Another time was arranged.")
        return skills.update_skill(conn, known.id, values)
    row = NewSkill(
        user_id=goal.user_id,
        agent_id=goal.agent_id,
        thread_id=find_report_thread(conn, goal),
        **_name(conn, goal, new.sort),
        instructions=new.intent or _INTENTS[new.sort],
        trigger_type="cron",
        trigger=new.schedule.trigger,
        plan=None,
        required_tools=[],
        max_steps=MODEL_CALLS,
        notify=True,
        notify_interval_minutes=0,
        missed="run",
        enabled=True,
        next_due=new.schedule.next_after(at),
        made_after=new.made_after,
        confirmed_at=at,
        goal_id=goal.id,
        check_in=new.sort,
    )
    return skills.add_skill(conn, row)


def rename_check_ins(conn: Connection, goal: StoredGoal) -> None:
    """Call them like the goal, which has another title now."""
    for one in skills.list_check_ins(conn, goal.id):
        skills.update_skill(conn, one.id, _name(conn, goal, cast("CheckInSort", one.check_in), one.id))


def _name(conn: Connection, goal: StoredGoal, sort: CheckInSort, own: int | None = None) -> _SkillName:
    name = skills.find_free_name(conn, goal.user_id, _NAMES[sort].format(title=goal.title), own)
    return {"name": name, "description": f"Belongs to the goal “{goal.title}”."}


def suspend_check_ins(conn: Connection, goal_id: str) -> None:
    """None is due any more. Which of them are switched on stays known."""
    for one in skills.list_check_ins(conn, goal_id):
        skills.change_skill(conn, one.id, {"next_due": None})
        skills.skip_due_fires(conn, one.id, "The goal was archived.")


def restore_check_ins(conn: Connection, goal: StoredGoal, at: datetime) -> None:
    """Those that are switched on are due again; a follow-up whose moment has passed, now."""
    for one in skills.list_check_ins(conn, goal.id):
        schedule = read_schedule(one.trigger)
        if one.enabled and schedule is not None and not comes_again(one):
            due = max(at, schedule.at) if isinstance(schedule, OneMoment) else schedule.next_after(at)
            skills.change_skill(conn, one.id, {"next_due": due})
    move_heartbeat(conn, goal, at)


def clear_check_ins(conn: Connection, goal_id: str, sort: CheckInSort | None = None) -> int:
    """Remove the check-ins of a goal, or those of one sort; returns how many there were."""
    found = [one for one in skills.list_check_ins(conn, goal_id) if sort in (None, one.check_in)]
    for one in found:
        skills.delete_skill(conn, one.id)
    return len(found)


def check_in_after_note(conn: Connection, goal: StoredGoal, at: datetime) -> None:
    """Look at what the person wrote, once they have written nothing more for a while."""
    if goal.state != "archived" and _is_on(conn, goal, "note"):
        set_check_in(conn, goal, CheckIn(sort="note", schedule=OneMoment(at + NOTE_DELAY)), at)
    move_heartbeat(conn, goal, at)


def comes_again(skill: StoredSkill) -> bool:
    """Whether it is arranged again whenever something happens, so that it is not over once it was done."""
    return skill.check_in in ("note", "heartbeat")


def move_heartbeat(conn: Connection, goal: StoredGoal, at: datetime) -> None:
    """Something happened just now: the next heartbeat is as far away as the goal's activity says, if it has any."""
    if goal.state != "archived" and _is_on(conn, goal, "heartbeat"):
        schedule = OneMoment(at + heartbeat_after(conn, goal, at))
        set_check_in(conn, goal, CheckIn(sort="heartbeat", schedule=schedule), at)


def _is_on(conn: Connection, goal: StoredGoal, sort: CheckInSort) -> bool:
    """Whether the goal has one that was not switched off, or never had one."""
    known = skills.find_check_in(conn, goal.user_id, sort, goal.id)
    return known is None or known.enabled


def heartbeat_after(conn: Connection, goal: StoredGoal, at: datetime) -> timedelta:
    since = at - _ACTIVITY_SPAN
    notes = goals.count_notes_since(conn, goal.id, since)
    said = messages.count_said_since(conn, GOALS, goal.id, since)
    activity = _NOTE_WEIGHT * notes + said
    return next(span for least, span in _HEARTBEATS if activity >= least)


def find_report_thread(conn: Connection, goal: StoredGoal) -> str:
    """The chat in which the person hears of a goal: where it was made, else the one used last, else their terminal."""
    if goal.thread_id is not None and threads.find_thread(conn, goal.thread_id) is not None:
        return goal.thread_id
    used = [one for one in threads.list_threads(conn, goal.user_id) if one.ended_at is None and is_chat(one.channel)]
    if used:
        return used[0].id
    return threads.find_or_create_thread(
        conn, channel=TERMINAL, chat_id=TERMINAL_CHAT, user_id=goal.user_id, agent_id=goal.agent_id
    ).id
