"""Makes and changes goals, and what belongs to them, for people and agents (AGE-02, AGE-12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import Final, Literal, cast
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from annabelle.agents.check_in import (
    LONGEST_DELAY,
    SHORTEST_DELAY,
    CheckIn,
    check_in_after_note,
    clear_check_ins,
    find_report_thread,
    move_heartbeat,
    rename_check_ins,
    restore_check_ins,
    set_check_in,
    suspend_check_ins,
)
from annabelle.agents.kind import MAX_STEPS
from annabelle.agents.task import TASKS, begin_again, cancel_task
from annabelle.agents.user_agent import FEED_TOOL
from annabelle.core.clock import Clock
from annabelle.core.errors import Conflict, InvalidArguments
from annabelle.core.messages import GOALS, InboundMessage
from annabelle.core.text import read_line
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.conversations.turn_canceller import TurnCanceller
from annabelle.hub.goals.note_service import NoteService
from annabelle.hub.skills.skill_service import describe_trigger
from annabelle.hub.trust.rules import RuleOrigin, StandingRules
from annabelle.skills.schedule import CronSchedule, OneMoment, Schedule
from annabelle.skills.skill_input import MAKES_SKILLS
from annabelle.store import goals, messages, skills, tasks, threads
from annabelle.store.database import Database
from annabelle.store.goals import NewGoal, StoredGoal, StoredNote
from annabelle.store.messages import QueueLimits
from annabelle.store.skills import NewSkill
from annabelle.store.tasks import StoredTask

DEFAULT_TOOLS: Final = ("searcher_web_search", "searcher_web_fetch", "search_memories")
FEED_TIMES: Final = {"Morning": "08:00", "Afternoon": "13:00", "Evening": "19:00"}
_DAYS: Final = {"daily": "*", "weekdays": "1-5"}
_WEEKDAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
Frequency = Literal["daily", "weekdays", "weekly"]
_MOST_GOALS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalService:
    database: Database
    clock: Clock
    time_zone: ZoneInfo
    thread_queue: ThreadQueue
    canceller: TurnCanceller
    rules: StandingRules
    notes: NoteService
    _listeners: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]], init=False)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Be told when check-ins have changed."""
        self._listeners.append(listener)

    def notify(self) -> None:
        for listener in self._listeners:
            listener()

    async def create(
        self,
        new: NewGoal,
        *,
        learnings: Sequence[str] = (),
        check_in: JsonObject | None = None,
        read_from: list[str] | None = None,
    ) -> StoredGoal:
        """Make a goal that the person has confirmed, once. With their first goal the feed begins."""
        at, new = self.clock.now(), replace(new, title=_read_title(new.title))
        schedule = None if check_in is None else self.read_recurring(check_in)

        def write(conn: Connection) -> StoredGoal:
            known = goals.list_goals(conn, new.user_id)
            same = _find_titled(conn, new.user_id, new.title)
            if same is not None and _list_terms(same) != _list_terms(new):
                raise _title_taken(same)
            if same is None and len(known) >= _MOST_GOALS:
                raise Conflict(f"There are {_MOST_GOALS} goals already.", hint="Archive some first.")
            goal = same or goals.add_goal(conn, new)
            for one in learnings:
                goals.add_learning(conn, goal.id, one, read_from)
            if schedule is not None:
                intent = str((check_in or {}).get("intent") or "")
                set_check_in(conn, goal, CheckIn(sort="recurring", schedule=schedule, intent=intent), at)
            move_heartbeat(conn, goal, at)
            if not any(skills.find_check_in(conn, goal.user_id, _feed_part(part)) for part in FEED_TIMES):
                for part, clock in FEED_TIMES.items():
                    self._set_feed(conn, goal, part, clock, at)
            return goal

        goal = await self.database.write(write)
        self.notify()
        return goal

    async def change(self, goal_id: str, user_id: str, changes: JsonObject) -> StoredGoal:
        """Change title, description, instructions or tools."""
        if "title" in changes:
            changes = changes | {"title": _read_title(str(changes["title"]))}

        def write(conn: Connection) -> StoredGoal:
            goals.get_goal(conn, goal_id, user_id)
            same = None if "title" not in changes else _find_titled(conn, user_id, str(changes["title"]))
            if same is not None and same.id != goal_id:
                raise _title_taken(same)
            if changes:
                goals.change_goal(conn, goal_id, changes)
            changed = goals.get_goal(conn, goal_id, user_id)
            if "title" in changes:
                rename_check_ins(conn, changed)
            return changed

        return await self.database.write(write)

    async def archive(self, goal_id: str, user_id: str) -> StoredGoal:
        """Put a goal away: nothing runs for it until it is reopened. Its notes stay searchable."""
        return await self._end_work(goal_id, user_id, "The goal was archived.")

    async def reopen(self, goal_id: str, user_id: str) -> StoredGoal:
        at = self.clock.now()

        def write(conn: Connection) -> StoredGoal:
            goal = goals.get_goal(conn, goal_id, user_id)
            if goal.state != "archived":
                return goal
            if (same := _find_titled(conn, user_id, goal.title)) is not None:
                raise _title_taken(same)
            goals.change_goal(conn, goal_id, {"state": "waiting"})
            goal = goals.get_goal(conn, goal_id, user_id)
            restore_check_ins(conn, goal, at)
            return goal

        reopened = await self.database.write(write)
        self.notify()
        return reopened

    async def delete(self, goal_id: str, user_id: str) -> StoredGoal:
        """Delete a goal with its notes, learnings, tasks and check-ins; what runs for it is stopped."""
        goal = await self._end_work(goal_id, user_id, "The goal was deleted.")

        def write(conn: Connection) -> None:
            clear_check_ins(conn, goal_id)
            goals.delete_goal(conn, goal_id)

        await self.database.write(write)
        self.notify()
        return goal

    async def reorder(self, user_id: str, goal_ids: Sequence[str]) -> list[StoredGoal]:
        def write(conn: Connection) -> list[StoredGoal]:
            goals.order_goals(conn, user_id, goal_ids)
            return goals.list_goals(conn, user_id, archived=True)

        return await self.database.write(write)

    async def find(self, named: str, user_id: str) -> StoredGoal:
        """A goal by its id, its place in the list or words of its title."""
        return await self.database.read(lambda conn: goals.find_named_goal(conn, named, user_id))

    async def say(
        self, goal: StoredGoal, text: str, asked_in: str | None = None, external_id: str | None = None
    ) -> str:
        """Write to a goal for a person; the answer comes in `asked_in`, too. Returns the id of the message.

        The same `external_id` is the same message. Secrets in the text are masked before this, as the gate does with
        what it receives.
        """
        said = InboundMessage(
            channel=GOALS,
            chat_id=goal.id,
            user_id=goal.user_id,
            sender_id=goal.user_id,
            text=text,
            external_id=external_id,
        )

        def write(conn: Connection) -> WriteResult[str]:
            known = goals.get_goal(conn, goal.id, goal.user_id)
            if known.state == "archived":
                raise Conflict(f"The goal “{known.title}” is archived.", hint="Reopen it first.")
            thread = threads.find_or_create_thread(
                conn, channel=GOALS, chat_id=goal.id, user_id=goal.user_id, agent_id=goal.agent_id
            )
            about: JsonObject = {} if asked_in is None else {"asked_in": asked_in}
            if messages.queue_message(conn, thread, said, QueueLimits(), metadata=about).duplicate:
                return WriteResult(thread.id, goal.user_id)
            goals.set_goal_state(conn, goal.id, "working")
            ruled = self.rules.add_stated_rules(conn, said, RuleOrigin(goal.user_id, thread.id, said.id))
            return WriteResult(thread.id, goal.user_id, ruled)

        await self.thread_queue.start_next(await self.canceller.events.transact(write))
        return said.id

    def after_note(self, conn: Connection, note: StoredNote) -> None:
        """A note of the person for a goal was stored in this transaction."""
        goal = None if note.goal_id is None else goals.find_goal(conn, note.goal_id)
        if goal is not None and note.written_by == "user":
            check_in_after_note(conn, goal, self.clock.now())

    async def set_check_in(
        self, goal_id: str, user_id: str, given: JsonObject, read_from: list[str] | None = None
    ) -> JsonObject:
        """Arrange or clear a check-in; returns what there is now."""
        at, action = self.clock.now(), given.get("action") or "schedule"
        new: CheckIn | None = None
        intent = str(given.get("intent") or "")
        if action == "schedule":
            new = CheckIn(sort="recurring", schedule=self.read_recurring(given), intent=intent, made_after=read_from)
        elif action == "follow_up":
            schedule = OneMoment(at + _read_delay(given))
            new = CheckIn(sort="follow_up", schedule=schedule, intent=intent, made_after=read_from)
        elif action != "clear":
            raise InvalidArguments(f"action is {action}.", hint="It is schedule, follow_up or clear.")

        def write(conn: Connection) -> JsonObject:
            goal = goals.get_goal(conn, goal_id, user_id)
            if goal.state == "archived":
                raise Conflict(f"The goal “{goal.title}” is archived.", hint="Reopen it first.")
            if new is None:
                for sort in ("recurring", "follow_up"):
                    clear_check_ins(conn, goal_id, sort)
            else:
                set_check_in(conn, goal, new, at)
            return {"check_ins": describe_check_ins(conn, goal_id)}

        arranged = await self.database.write(write)
        self.notify()
        return arranged

    def read_recurring(self, given: JsonObject) -> Schedule:
        """`frequency` daily, weekdays or weekly, `time` as 08:30, `day` of a weekly one."""
        frequency, clock = str(given.get("frequency") or "daily"), read_clock(given.get("time") or "09:00")
        if frequency == "weekly":
            day = str(given.get("day") or "monday").casefold()
            if day not in _WEEKDAYS:
                raise InvalidArguments(f"day is {day}.", hint=f"It is one of {', '.join(_WEEKDAYS)}.")
            days = str(_WEEKDAYS.index(day))
        elif frequency in _DAYS:
            days = _DAYS[frequency]
        else:
            raise InvalidArguments(f"frequency is {frequency}.", hint="It is daily, weekdays or weekly.")
        return CronSchedule(f"{clock.minute} {clock.hour} * * {days}", self.time_zone)

    async def set_feed_times(self, user_id: str, times: dict[str, str | None]) -> dict[str, str | None]:
        """When each part of the feed comes; None switches it off. Parts that are not named stay."""
        at = self.clock.now()

        def write(conn: Connection) -> dict[str, str | None]:
            for part, clock in times.items():
                self._set_feed(conn, self._feed_owner(conn, user_id), part, clock, at)
            return self.load_feed_times(conn, user_id)

        set_times = await self.database.write(write)
        self.notify()
        return set_times

    def load_feed_times(self, conn: Connection, user_id: str) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for part in FEED_TIMES:
            skill = skills.find_check_in(conn, user_id, _feed_part(part))
            if skill is None or not skill.enabled:
                found[part] = None
                continue
            minute, hour = str(skill.trigger.get("schedule", "* *")).split()[:2]
            here = skill.trigger.get("timezone") == self.time_zone.key
            daily = here and minute.isdecimal() and hour.isdecimal()  # else the person changed the skill
            found[part] = f"{int(hour):02}:{int(minute):02}" if daily else describe_trigger(skill, self.time_zone)
        return found

    async def retry_task(self, task_id: str, user_id: str) -> StoredTask:
        def write(conn: Connection) -> str:
            task = _get_goal_task(conn, task_id, user_id)
            if task.state in ("active", "completed"):
                raise Conflict(f"The task “{task.name}” is {task.state}.", hint="Only one that failed is tried again.")
            if task.waits_for_person:
                raise Conflict(f"The task “{task.name}” waits for your answer.", hint="annabelle approvals shows it.")
            return begin_again(conn, task, self.clock.now())

        thread_id = await self.database.write(write)
        await self.thread_queue.start_next(thread_id)
        return await self.database.read(lambda conn: tasks.get_task(conn, task_id, user_id))

    async def cancel_task(self, task_id: str, user_id: str, why: str = "It was cancelled.") -> StoredTask:
        at = self.clock.now()

        def write(conn: Connection) -> WriteResult[None]:
            cancelled = cancel_task(conn, _get_goal_task(conn, task_id, user_id), why, at, told=False)
            return WriteResult(None, user_id, cancelled)

        await self.canceller.events.transact(write)
        await self.canceller.stop_chat(TASKS, task_id, user_id)
        return await self.database.read(lambda conn: tasks.get_task(conn, task_id, user_id))

    async def _end_work(self, goal_id: str, user_id: str, why: str) -> StoredGoal:
        """Archive a goal, so that nothing new begins for it, then stop what runs."""

        def write(conn: Connection) -> tuple[StoredGoal, list[StoredTask]]:
            goals.get_goal(conn, goal_id, user_id)
            goals.change_goal(conn, goal_id, {"state": "archived"})
            suspend_check_ins(conn, goal_id)
            return goals.get_goal(conn, goal_id, user_id), tasks.list_at_work(conn, goal_id)

        goal, at_work = await self.database.write(write)
        self.notify()
        for task in at_work:
            await self.cancel_task(task.id, user_id, why)
        await self.canceller.stop_chat(GOALS, goal_id, user_id)
        return goal

    def _feed_owner(self, conn: Connection, user_id: str) -> StoredGoal:
        """Any goal of the person, whose agent and chat the feed has."""
        known = goals.list_goals(conn, user_id)
        if not known:
            raise Conflict("There is no goal yet, so there is nothing for a feed.", hint="annabelle goals new")
        return known[0]

    def _set_feed(self, conn: Connection, goal: StoredGoal, part: str, clock: str | None, at: datetime) -> None:
        known = skills.find_check_in(conn, goal.user_id, _feed_part(part))
        if clock is None:
            if known is not None:
                skills.change_skill(conn, known.id, {"enabled": False, "next_due": None})
            return
        moment = read_clock(clock)
        schedule = CronSchedule(f"{moment.minute} {moment.hour} * * *", self.time_zone)
        values: JsonObject = {"trigger": schedule.trigger, "next_due": schedule.next_after(at), "enabled": True}
        values |= {"agent_id": goal.agent_id, "failures": 0, "disabled_why": None}
        if known is not None:
            skills.change_skill(conn, known.id, values)
            return
        new = NewSkill(
            user_id=goal.user_id,
            agent_id=goal.agent_id,
            thread_id=find_report_thread(conn, goal),
            name=skills.find_free_name(conn, goal.user_id, f"{part} feed"),
            description="What is new and worth knowing across the goals.",
            instructions="Write my feed: look up what is new for my goals, and think about how they go.",
            trigger_type="cron",
            trigger=schedule.trigger,
            plan=None,
            required_tools=[],
            max_steps=MAX_STEPS,
            notify=True,
            notify_interval_minutes=0,
            missed="skip",
            enabled=True,
            next_due=schedule.next_after(at),
            confirmed_at=at,
            check_in=_feed_part(part),
        )
        skills.add_skill(conn, new)


def check_goal_tools(wanted: Sequence[str], offered: Iterable[ToolSpec]) -> None:
    """Raises if a goal cannot have one of these tools: it is not offered, makes what runs by itself, or the feed."""
    known = {one.name for one in offered}
    if unknown := [one for one in wanted if one not in known]:
        raise InvalidArguments(
            f"There is no tool {', '.join(unknown)}.", hint="search_tools finds names.", field="tools"
        )
    if forbidden := (MAKES_SKILLS | {FEED_TOOL}) & set(wanted):
        raise InvalidArguments(
            f"A goal cannot have {', '.join(sorted(forbidden))}.", hint="Leave it out.", field="tools"
        )


def _find_titled(conn: Connection, user_id: str, title: str) -> StoredGoal | None:
    known = goals.list_goals(conn, user_id)
    return next((one for one in known if one.title.casefold() == title.casefold()), None)


def _title_taken(goal: StoredGoal) -> Conflict:
    return Conflict(f"There is a goal “{goal.title}” already.", hint="Give this one another title.")


def _list_terms(goal: NewGoal) -> tuple[str, ...]:
    """What the person confirmed, beside the title."""
    return goal.description, goal.instructions, *goal.tools


def _read_title(given: str) -> str:
    """In one line, with something in it that can be seen."""
    title = read_line(given)
    if not title:
        raise InvalidArguments("The title is empty.", hint="Give a few words.", field="title")
    return title


def describe_check_ins(conn: Connection, goal_id: str) -> list[JsonObject]:
    return [
        {
            "sort": one.check_in,
            "intent": one.instructions,
            "next_due": one.next_due.isoformat(),
            "trigger": one.trigger,
        }
        for one in skills.list_check_ins(conn, goal_id)
        if one.enabled and one.next_due is not None
    ]


def read_clock(given: object) -> time:
    try:
        return time.fromisoformat(str(given))
    except ValueError as error:
        raise InvalidArguments(f"time is {given}.", hint="Give it as 08:30.") from error


def _read_delay(given: JsonObject) -> timedelta:
    try:
        delay = timedelta(hours=float(cast("float", given.get("delay_hours"))))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArguments("delay_hours is missing or no number.", hint="Give hours, from 1 to 720.") from error
    if not SHORTEST_DELAY <= delay <= LONGEST_DELAY:
        raise InvalidArguments(f"delay_hours is {given['delay_hours']}.", hint="It is from 1 hour to 30 days (720).")
    return delay


def _feed_part(part: str) -> str:
    return f"feed_{part.casefold()}"


def _get_goal_task(conn: Connection, task_id: str, user_id: str) -> StoredTask:
    task = tasks.get_task(conn, task_id, user_id)
    if task.kind != "goal":
        raise Conflict(f"“{task.name}” is not a task of a goal.", hint="Only those can be cancelled or tried again.")
    return task
