"""Makes, changes and lists skills for people and agents (SKL-01, SKL-09)."""

from __future__ import annotations

import asyncio
import calendar
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, cast
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from annabelle.agents.check_in import comes_again
from annabelle.core.clock import Clock
from annabelle.core.errors import InvalidArguments, NotAllowed, Unavailable
from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.hub.security.request_guard import RateLimit
from annabelle.hub.security.users_file import hash_token
from annabelle.policy.person_words import content_words, normalize_text
from annabelle.policy.standing_order import StandingOrder, read_standing_order
from annabelle.skills.playbook import Playbook
from annabelle.skills.playbook_folder import keep_playbook
from annabelle.skills.schedule import (
    CronSchedule,
    DayStepSchedule,
    IntervalSchedule,
    OneMoment,
    read_schedule,
)
from annabelle.skills.skill_input import MAKES_SKILLS, SAY, SYSTEM, SkillInput
from annabelle.store import skills, threads, tool_calls
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
    playbooks: Path
    webhook_rate: RateLimit
    token_budget: int
    """Of one run, where the skill says nothing else."""
    _listeners: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]], init=False)

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    async def add(
        self,
        given: Mapping[str, object],
        owner: SkillOwner,
        *,
        message_id: str | None = None,
        confirmed: bool = True,
        system: bool = False,
    ) -> StoredSkill:
        """Make a skill. What was read from outside in the conversation of the message is kept with it (TRU-03).

        Only `system` ones may be work on the home itself.
        """
        at = self.clock.now()  # one moment for all of it: reading a date may take longer than until it is due
        asked = await asyncio.to_thread(SkillInput.read, given, at, self.time_zone)
        if not system:
            _check_tools(asked)
        new = _new_skill(asked, owner, at)

        def write(conn: Connection) -> StoredSkill:
            known = {skill.name: skill for skill in skills.list_skills(conn, owner.user_id)}
            if (same := known.get(new.name)) is not None and _is_same(same, new):
                return same
            name = new.name if given.get("name") else skills.find_free_name(conn, owner.user_id, new.name)
            foreign = [] if message_id is None else tool_calls.list_untrusted_tools(conn, message_id)
            confirmed_at = at if confirmed else None
            return skills.add_skill(
                conn, replace(new, name=name, made_after=foreign or None, confirmed_at=confirmed_at)
            )

        made = await self.database.write(write)
        await self._changed(made)
        return made

    async def update(
        self, named: str | int, given: Mapping[str, object], user_id: str, *, by_person: bool = False
    ) -> StoredSkill:
        """Change a skill. Only the person can switch on one they have not said yes to (POL-09)."""
        at = self.clock.now()
        asked = await asyncio.to_thread(SkillInput.read, given, at, self.time_zone)
        if asked.enabled and by_person:
            await self._check_servers(await self.get(named, user_id))

        def write(conn: Connection) -> StoredSkill:
            known = skills.find_skill(conn, named, user_id)
            changes = _find_changes(known, asked, given, at)
            if asked.enabled and known.confirmed_at is None:
                changes |= self._confirm(conn, known, at, by_person=by_person)
            if "next_due" in changes:  # another time, or none
                skills.skip_due_fires(conn, known.id, "The skill was changed.")
            return skills.update_skill(conn, known.id, changes)

        changed = await self.database.write(write)
        await self._changed(changed)
        return changed

    async def suspend(self, skill_id: int, user_id: str, why: str) -> None:
        """Switch it off for a reason that may go away again."""
        off: JsonObject = {"enabled": False, "next_due": None, "disabled_why": why}
        await self._change(skill_id, user_id, off)

    async def restore(self, skill_id: int, user_id: str) -> None:
        """Switch on again what was suspended."""
        skill = await self.get(skill_id, user_id)
        on: JsonObject = {"enabled": True, "next_due": _next_due(skill.trigger, self.clock.now()), "disabled_why": None}
        await self._change(skill_id, user_id, on)

    async def _change(self, skill_id: int, user_id: str, changes: JsonObject) -> None:
        def write(conn: Connection) -> StoredSkill:
            return skills.update_skill(conn, skills.find_skill(conn, skill_id, user_id).id, changes)

        await self._changed(await self.database.write(write))

    def _confirm(self, conn: Connection, skill: StoredSkill, at: datetime, *, by_person: bool) -> JsonObject:
        """The person's yes to a skill that was offered; it reports to the chat they used last."""
        if not by_person:
            raise NotAllowed(
                f"“{skill.name}” runs once you say yes to it yourself.", hint=f"annabelle skills enable “{skill.name}”"
            )
        if missing := self.unknown_tools(skill):
            raise Unavailable(
                f"“{skill.name}” needs {', '.join(missing)}, which is not there.",
                hint="Connect the account it is for: annabelle connect --help",
            )
        latest = [thread.id for thread in threads.list_threads(conn, skill.user_id) if thread.ended_at is None]
        confirmed: JsonObject = {"confirmed_at": at}
        return confirmed | ({"thread_id": latest[0]} if latest else {})

    async def _check_servers(self, skill: StoredSkill) -> None:
        """Raises Unavailable if a server of its tools lacks something, as an account. Its tools are listed even so."""
        servers = {tool.server for tool in self.toolbox.tools().tools if tool.name in _name_tools(skill)}
        if skill.confirmed_at is None and (missing := await self.toolbox.find_missing(servers)):
            raise Unavailable(f"“{skill.name}” cannot run yet. {' '.join(missing)}")

    async def delete(self, named: str | int, user_id: str) -> StoredSkill:
        def write(conn: Connection) -> StoredSkill:
            known = skills.find_skill(conn, named, user_id)
            skills.delete_skill(conn, known.id)
            return known

        deleted = await self.database.write(write)
        await self._changed(replace(deleted, enabled=False))
        return deleted

    async def run_now(self, named: str | int, user_id: str) -> StoredFire:
        """Fire it once, beside its schedule."""
        at = self.clock.now()

        def write(conn: Connection) -> StoredFire:
            skill = skills.find_skill(conn, named, user_id)
            if skill.confirmed_at is None:
                raise NotAllowed(
                    f"“{skill.name}” runs once you say yes to it.", hint=f"annabelle skills enable “{skill.name}”"
                )
            return _fire_at(conn, skill, at, {"by": "hand"})

        return await self._fire(write)

    async def fire_by_webhook(self, secret: str, text: str) -> StoredFire:
        """Fire the skill of this secret with what was sent; NotFound for any other (SKL-11)."""
        at = self.clock.now()
        payload: JsonObject = {"source": "webhook", "text": text}

        def write(conn: Connection) -> StoredFire:
            skill = skills.find_by_webhook(conn, hash_token(secret.encode()))
            self.webhook_rate.check(skill.id)
            return _fire_at(conn, skill, at, payload)

        return await self._fire(write)

    async def fire_by_memory(self, user_id: str, fact: str) -> None:
        """Fire the skills whose condition is met by a fact that was just stored (SKL-11)."""
        at, words = self.clock.now(), content_words(normalize_text(fact))
        payload: JsonObject = {"source": "memory", "text": fact}

        def write(conn: Connection) -> list[StoredFire]:
            wanted = [
                skill for skill in skills.list_skills(conn, user_id) if skill.enabled and "memory" in skill.trigger
            ]
            met = [one for one in wanted if content_words(normalize_text(str(one.trigger["memory"]))) <= words]
            return [_fire_at(conn, skill, at, payload) for skill in met]

        if await self.database.write(write):
            self.notify()

    async def make_webhook(self, named: str | int, user_id: str) -> str:
        """A new secret for the address of a skill. Only its hash is kept, and an earlier one is void."""
        secret = secrets.token_urlsafe(32)

        def write(conn: Connection) -> StoredSkill:
            known = skills.find_skill(conn, named, user_id)
            return skills.update_skill(conn, known.id, {"webhook_hash": hash_token(secret.encode())})

        await self.database.write(write)
        return secret

    async def _fire(self, write: Callable[[Connection], StoredFire]) -> StoredFire:
        fire = await self.database.write(write)
        self.notify()
        return fire

    async def get(self, named: str | int, user_id: str) -> StoredSkill:
        return await self.database.read(lambda conn: skills.find_skill(conn, named, user_id))

    async def list(self, user_id: str) -> list[StoredSkill]:
        return await self.database.read(lambda conn: skills.list_skills(conn, user_id))

    async def list_upcoming(self, user_id: str, span: timedelta) -> list[tuple[datetime, StoredSkill]]:
        """When skills are due from now on, in order; of each at most as many as every quarter of an hour."""
        begin = self.clock.now()
        most = int(span / timedelta(minutes=15))
        found: list[tuple[datetime, StoredSkill]] = []
        for skill in await self.list(user_id):
            schedule = read_schedule(skill.trigger)
            moment, count = skill.next_due, 0
            while schedule is not None and moment is not None and moment <= begin + span and count < most:
                found.append((moment, skill))
                moment, count = schedule.next_after(moment), count + 1
        return sorted(found, key=lambda one: one[0])

    async def history(self, user_id: str, named: str | int | None, limit: int) -> list[StoredFire]:
        def read(conn: Connection) -> list[StoredFire]:
            skill = None if named is None else skills.find_skill(conn, named, user_id).id
            return skills.list_fires(conn, user_id, skill, limit)

        return await self.database.read(read)

    def unknown_tools(self, skill: StoredSkill) -> list[str]:
        """Tools a skill names that do not exist now."""
        known = {tool.name for tool in self.toolbox.tools().tools}
        return [tool for tool in _name_tools(skill) if tool not in known and not tool.startswith(SYSTEM)]

    def order_of(self, skill: StoredSkill) -> StandingOrder:
        """What its runs may do: the words, tools and bounds that the person said yes to (POL-09)."""
        budget = None if skill.plan else skill.token_budget or self.token_budget
        looked_at = [] if skill.preflight is None else [str(skill.preflight["tool"])]
        return read_standing_order(skill.instructions, [*skill.required_tools, *looked_at], skill.plan, budget)

    def describe(self, skill: StoredSkill) -> str:
        """When it fires, in words."""
        return describe_trigger(skill, self.time_zone)

    async def _changed(self, skill: StoredSkill) -> None:
        """Keywords are for the one library that a message is matched against: the playbooks (PLB-02)."""
        if keywords := cast("list[str]", skill.trigger.get("keywords") or []):
            playbook = Playbook(
                name=f"skill-{skill.id}",
                instructions=skill.instructions,
                keywords=tuple(keywords),
                required_tools=tuple(skill.required_tools),
                description=skill.description or skill.name,
            )
            await asyncio.to_thread(keep_playbook, self.playbooks, playbook, wanted=skill.enabled)
        self.notify()

    def notify(self) -> None:
        """Say that something about skills has changed."""
        for listener in self._listeners:
            listener()


def _name_tools(skill: StoredSkill) -> list[str]:
    return [*skill.required_tools, *([str(skill.plan["tool"])] if skill.plan else [])]


def _fire_at(conn: Connection, skill: StoredSkill, at: datetime, payload: JsonObject | None = None) -> StoredFire:
    """A fire at this instant, or at the next one that has none."""
    while True:
        if added := skills.add_fires(conn, skill, [(at, "due")], payload):
            return added[0]
        at += timedelta(milliseconds=1)


def _new_skill(asked: SkillInput, owner: SkillOwner, at: datetime) -> NewSkill:
    if asked.trigger is not None and "keywords" in asked.trigger and owner.user_id != OWNER:
        raise NotAllowed("Only the owner may have skills for keywords: they are for everyone's messages.")
    if asked.plan is not None and asked.plan.tool == SAY and not asked.trigger:
        raise InvalidArguments("It is not said when.", hint="Give when, at, in_minutes, schedule or interval_minutes.")
    if asked.name is None or (asked.plan is None and not asked.instructions):
        raise InvalidArguments(
            "It is not said what to do.", hint="Give a message to be reminded of, an execution_plan, or instructions."
        )
    enabled = asked.enabled is not False
    trigger = asked.trigger or {}
    return NewSkill(
        user_id=owner.user_id,
        agent_id=owner.agent_id,
        thread_id=owner.thread_id,
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
        token_budget=asked.token_budget,
        preflight=asked.preflight,
    )


def _check_tools(asked: SkillInput) -> None:
    named = {*(asked.required_tools or ()), *([asked.plan.tool] if asked.plan else ())}
    if named & MAKES_SKILLS or any(tool.startswith(SYSTEM) for tool in named):
        raise InvalidArguments("A skill can make or change no skills.", hint="Leave those tools out.")


def _find_changes(known: StoredSkill, asked: SkillInput, given: Mapping[str, object], at: datetime) -> JsonObject:
    _check_tools(asked)
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
        "token_budget": asked.token_budget,
        "preflight": asked.preflight,
        "notify": asked.notify,
        "notify_interval_minutes": asked.notify_interval_minutes,
        "missed": asked.missed,
        "enabled": asked.enabled,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    enabled = known.enabled if asked.enabled is None else asked.enabled
    if asked.trigger is not None or asked.enabled is not None:
        trigger = asked.trigger or known.trigger
        next_due = _next_due(trigger, at) if enabled else None
        if next_due is None and enabled and isinstance(read_schedule(trigger), OneMoment):
            if not comes_again(known):
                raise InvalidArguments("Its time is over.", hint="Give it another one.")
            next_due = at
        changes |= {"next_due": next_due}
    if asked.enabled:
        changes |= {"failures": 0, "disabled_why": None}
    return changes


def _next_due(trigger: JsonObject, at: datetime) -> datetime | None:
    schedule = read_schedule(trigger)
    return None if schedule is None else schedule.next_after(at)


def describe_trigger(skill: StoredSkill, time_zone: ZoneInfo) -> str:
    schedule = read_schedule(skill.trigger)
    if isinstance(schedule, OneMoment):
        return f"once, {format_moment(schedule.at, time_zone)}"
    if isinstance(schedule, IntervalSchedule):
        hours, minutes = divmod(schedule.minutes, 60)
        if minutes or not hours:
            return f"every {schedule.minutes} minutes" if schedule.minutes > 1 else "every minute"
        return f"every {hours} hours" if hours > 1 else "every hour"
    if isinstance(schedule, DayStepSchedule):
        weeks, days = divmod(schedule.days, 7)
        step = f"{schedule.days} days" if days else f"{weeks} weeks on {schedule.first_day:%A}"
        return f"every {step} at {schedule.clock:%H:%M}{_name_other_zone(schedule.time_zone, time_zone)}"
    if isinstance(schedule, CronSchedule):
        return _describe_cron(schedule, time_zone)
    keywords = skill.trigger.get("keywords")
    if keywords:
        return f"when you say {' or '.join(cast('list[str]', keywords))}"
    if memory := skill.trigger.get("memory"):
        return f"when “{memory}” is remembered"
    return "when its webhook is called" if skill.webhook_hash else "when it is run by hand"


def _name_other_zone(own: ZoneInfo, users: ZoneInfo) -> str:
    return "" if own.key == users.key else f" ({own.key})"


def _describe_cron(schedule: CronSchedule, time_zone: ZoneInfo) -> str:
    """In words where it is simple, else as it is."""
    minute, hour, day, month, weekday = schedule.expression.split()
    zone = _name_other_zone(schedule.time_zone, time_zone)
    clock = f"at {int(hour):02}:{int(minute):02}{zone}" if minute.isdecimal() and hour.isdecimal() else None
    if clock and month == weekday == "*" and (day == "l" or day.replace(",", "").isdecimal()):
        return f"on {'the last day' if day == 'l' else f'day {day}'} of every month {clock}"
    if clock and weekday == "*" and day.isdecimal() and month.isdecimal():
        return f"every year on {int(day)} {calendar.month_name[int(month)]} {clock}"
    if clock is None or day != "*" or month != "*":
        return f"at {schedule.expression} (cron, {schedule.time_zone.key})"
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


def _plan_row(asked: SkillInput) -> JsonObject | None:
    return None if asked.plan is None else {"tool": asked.plan.tool, "arguments": asked.plan.arguments}
