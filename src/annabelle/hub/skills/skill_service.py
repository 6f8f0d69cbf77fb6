"""Makes, changes and lists skills for people and agents (SKL-01, SKL-09)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from annabelle.core.clock import Clock
from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject
from annabelle.skills.schedule import CronSchedule, IntervalSchedule, OneMoment, find_time_zone, read_schedule
from annabelle.skills.skill_input import SAY, SkillInput
from annabelle.store import skills
from annabelle.store.database import Database
from annabelle.store.skills import NewSkill, StoredFire, StoredSkill
from annabelle.toolbox.facade import Toolbox

_MAX_STEPS: Final = 10
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


@dataclass(frozen=True, slots=True)
class SkillOwner:
    """Who a skill belongs to, and the chat it reports to."""

    user_id: str
    agent_id: str
    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillService:
    database: Database
    clock: Clock
    time_zone: ZoneInfo
    toolbox: Toolbox
    _listeners: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]], init=False)

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    async def add(self, given: Mapping[str, object], owner: SkillOwner) -> StoredSkill:
        at = self.clock.now()  # one moment for all of it: reading a date may take longer than until it is due
        new = _new_skill(await asyncio.to_thread(SkillInput.read, given, at, self.time_zone), owner, at)

        def write(conn: Connection) -> StoredSkill:
            known = {skill.name: skill for skill in skills.list_skills(conn, owner.user_id)}
            if (same := known.get(new.name)) is not None and _is_same(same, new):
                return same
            name = new.name if given.get("name") else _free_name(new.name, known)
            return skills.add_skill(conn, replace(new, name=name))

        made = await self.database.write(write)
        self._notify()
        return made

    async def update(self, named: str | int, given: Mapping[str, object], user_id: str) -> StoredSkill:
        at = self.clock.now()
        asked = await asyncio.to_thread(SkillInput.read, given, at, self.time_zone)

        def write(conn: Connection) -> StoredSkill:
            known = skills.find_skill(conn, named, user_id)
            return skills.update_skill(conn, known.id, _find_changes(known, asked, given, at))

        changed = await self.database.write(write)
        self._notify()
        return changed

    async def delete(self, named: str | int, user_id: str) -> StoredSkill:
        def write(conn: Connection) -> StoredSkill:
            known = skills.find_skill(conn, named, user_id)
            skills.delete_skill(conn, known.id)
            return known

        deleted = await self.database.write(write)
        self._notify()
        return deleted

    async def run_now(self, named: str | int, user_id: str) -> StoredFire:
        """Fire it once, beside its schedule. Twice at one instant is once."""
        at = self.clock.now()

        def write(conn: Connection) -> StoredFire:
            skill = skills.find_skill(conn, named, user_id)
            skills.add_fires(conn, skill, [(at, "due")])
            return skills.load_fire(conn, skills.make_fire_id(skill.id, at))

        fire = await self.database.write(write)
        self._notify()
        return fire

    async def get(self, named: str | int, user_id: str) -> StoredSkill:
        return await self.database.read(lambda conn: skills.find_skill(conn, named, user_id))

    async def list(self, user_id: str) -> list[StoredSkill]:
        return await self.database.read(lambda conn: skills.list_skills(conn, user_id))

    async def history(self, user_id: str, named: str | int | None, limit: int) -> list[StoredFire]:
        def read(conn: Connection) -> list[StoredFire]:
            skill = None if named is None else skills.find_skill(conn, named, user_id).id
            return skills.list_fires(conn, user_id, skill, limit)

        return await self.database.read(read)

    def unknown_tools(self, skill: StoredSkill) -> list[str]:
        """Tools a skill names that do not exist now."""
        named = [*skill.required_tools, *([str(skill.plan["tool"])] if skill.plan else [])]
        known = {tool.name for tool in self.toolbox.tools().tools}
        return [tool for tool in named if tool not in known]

    def describe(self, skill: StoredSkill) -> str:
        """When it fires, in words."""
        return describe_trigger(skill, self.time_zone)

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()


def _new_skill(asked: SkillInput, owner: SkillOwner, at: datetime) -> NewSkill:
    if asked.name is None or asked.plan is None:
        raise InvalidArguments(
            "A skill makes one call: what needs a model cannot run by itself yet.",
            hint="Give a message to be reminded of, or an execution_plan of one step.",
        )
    enabled = asked.enabled is not False
    trigger = asked.trigger or {}
    return NewSkill(
        **_owned(owner),
        name=asked.name,
        description=asked.description or "",
        instructions=asked.instructions or "",
        trigger_type=asked.trigger_type or "manual",
        trigger=trigger,
        plan=_plan_row(asked),
        required_tools=list(asked.required_tools or ()),
        max_steps=asked.max_steps or _MAX_STEPS,
        notify=asked.notify is not False,
        notify_interval_minutes=asked.notify_interval_minutes or 0,
        missed=asked.missed or "run",
        enabled=enabled,
        next_due=_next_due(trigger, at) if enabled else None,
    )


def _find_changes(known: StoredSkill, asked: SkillInput, given: Mapping[str, object], at: datetime) -> JsonObject:
    named = asked.name if given.get("name") else None
    changes: JsonObject = {
        "name": named,
        "description": asked.description,
        "instructions": asked.instructions,
        "trigger_type": asked.trigger_type,
        "trigger": asked.trigger,
        "plan": _plan_row(asked),
        "required_tools": None if asked.required_tools is None else list(asked.required_tools),
        "max_steps": asked.max_steps,
        "notify": asked.notify,
        "notify_interval_minutes": asked.notify_interval_minutes,
        "missed": asked.missed,
        "enabled": asked.enabled,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    enabled = known.enabled if asked.enabled is None else asked.enabled
    if asked.trigger is not None or asked.enabled is not None:
        trigger = asked.trigger or known.trigger
        changes |= {"next_due": _next_due(trigger, at) if enabled else None}
    if asked.enabled:
        changes |= {"failures": 0, "disabled_why": None}
    return changes


def _next_due(trigger: JsonObject, at: datetime) -> datetime | None:
    schedule = read_schedule(trigger)
    return None if schedule is None else schedule.next_after(at)


def find_user_zone(name: str) -> ZoneInfo:
    try:
        return find_time_zone(name)
    except InvalidArguments:
        return ZoneInfo("UTC")


def describe_trigger(skill: StoredSkill, time_zone: ZoneInfo) -> str:
    schedule = read_schedule(skill.trigger)
    if isinstance(schedule, OneMoment):
        return f"once, {format_moment(schedule.at, time_zone)}"
    if isinstance(schedule, IntervalSchedule):
        hours, minutes = divmod(schedule.minutes, 60)
        if minutes or not hours:
            return f"every {schedule.minutes} minutes" if schedule.minutes > 1 else "every minute"
        return f"every {hours} hours" if hours > 1 else "every hour"
    if isinstance(schedule, CronSchedule):
        return _describe_cron(schedule)
    keywords = skill.trigger.get("keywords")
    return f"when somebody says {keywords}" if keywords else "when it is run by hand"


def _describe_cron(schedule: CronSchedule) -> str:
    """In words where it is simple, else as it is."""
    minute, hour, day, month, weekday = schedule.expression.split()
    if not (minute.isdecimal() and hour.isdecimal() and day == month == "*"):
        return f"at {schedule.expression} (cron, {schedule.time_zone.key})"
    clock = f"at {int(hour):02}:{int(minute):02}"
    if weekday == "*":
        return f"every day {clock}"
    if weekday == "1-5":
        return f"every weekday {clock}"
    days = [_DAYS[int(one) % 7] for one in weekday.split(",") if one.isdecimal()]
    return f"every {' and '.join(days)} {clock}" if days else f"at {schedule.expression} (cron)"


def format_moment(moment: datetime, time_zone: ZoneInfo) -> str:
    return f"{moment.astimezone(time_zone):%A %Y-%m-%d %H:%M}"


def _is_same(skill: StoredSkill, new: NewSkill) -> bool:
    return skill.enabled and (skill.trigger, skill.plan, skill.instructions) == (
        new.trigger,
        new.plan,
        new.instructions,
    )


def _free_name(name: str, known: Collection[str]) -> str:
    """This name, or with a number behind it if it is taken."""
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one not in known)


def _owned(owner: SkillOwner) -> dict[str, str]:
    return {"user_id": owner.user_id, "agent_id": owner.agent_id, "thread_id": owner.thread_id}


def _plan_row(asked: SkillInput) -> JsonObject | None:
    return None if asked.plan is None else {"tool": asked.plan.tool, "arguments": asked.plan.arguments}


def is_reminder(skill: StoredSkill) -> bool:
    return skill.plan is not None and skill.plan["tool"] == SAY
