"""What `memory_store_skill` and `memory_update_skill` are given, repaired and checked (SKL-01, SKL-09).

Models flatten what should be nested, write numbers as text and use other names; what is meant is plain, so it is taken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, cast
from zoneinfo import ZoneInfo

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject
from annabelle.skills.schedule import MOST_MINUTES, IntervalSchedule, OneMoment, Schedule, find_time_zone, parse_cron
from annabelle.skills.spoken_schedule import read_moment, read_when

TriggerType = Literal["cron", "manual", "event"]
MissedPolicy = Literal["run", "skip", "list"]
SAY: Final = "send_message"
"""The tool of a reminder: it says something in the chat the reminder was made in."""
_ALIASES: Final = {
    "cronExpression": "schedule",
    "cron_expression": "schedule",
    "cron": "schedule",
    "intervalMinutes": "interval_minutes",
    "inMinutes": "in_minutes",
    "inHours": "in_hours",
    "timeZone": "timezone",
    "time_zone": "timezone",
}
_TIMES: Final = (
    "schedule",
    "interval_minutes",
    "at",
    "in_minutes",
    "in_hours",
    "when",
    "timezone",
    "keywords",
    "memory",
)
_NAME_CHARS, _LONGEST = 60, 200
SYSTEM: Final = "system:"
"""Begins the name of work on the home itself, which only default skills may have."""
MAKES_SKILLS: Final = frozenset({"memory_store_skill", "memory_update_skill", "memory_delete_skill"})
"""No skill may use them: it would multiply, and nobody is there to be asked."""
MOST_STEPS: Final = 50
_MOST_TOKENS: Final = 10_000_000
_MOST_WINDOW: Final = 60 * 24 * 31


@dataclass(frozen=True, slots=True)
class SkillPlan:
    """The one call of a skill that needs no model (SKL-02)."""

    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class SkillInput:
    """A skill as it was asked for; None where nothing was said."""

    name: str | None
    description: str | None
    instructions: str | None
    trigger_type: TriggerType | None
    trigger: JsonObject | None
    """As it is stored: absolute, with its time zone."""
    plan: SkillPlan | None
    required_tools: tuple[str, ...] | None
    max_steps: int | None
    token_budget: int | None
    preflight: JsonObject | None
    notify: bool | None
    notify_interval_minutes: int | None
    missed: MissedPolicy | None
    enabled: bool | None

    @classmethod
    def read(cls, given: Mapping[str, object], now: datetime, time_zone: ZoneInfo) -> SkillInput:
        values, times = _split(given)
        schedule = _read_schedule(times, now, time_zone)
        keywords = _read_list(times.get("keywords"))
        kind = values.get("trigger_type")
        if schedule is not None:
            kind = "cron"
        elif keywords or times.get("memory"):
            kind = "event"
        spoken: JsonObject | None = {"keywords": list(keywords)} if keywords else None
        if times.get("memory"):
            spoken = {"memory": str(times["memory"])}
        trigger = spoken if schedule is None else schedule.trigger
        if kind == "cron" and schedule is None:
            raise InvalidArguments(
                "It is not said when.", hint="Give when, at, in_minutes, schedule or interval_minutes."
            )
        plan, tools = _read_plan(values)
        required = _read_list(values.get("required_tools"))
        message = _read_text(values.get("message"))
        if message is not None and plan is None:
            plan = SkillPlan(SAY, {"message": f"⏰ {message}"})
        return cls(
            name=_read_name(values.get("name")) or _make_name(message or _read_text(values.get("instructions"))),
            description=_read_text(values.get("description")),
            instructions=_read_text(values.get("instructions")) or message,
            trigger_type=cast("TriggerType | None", kind),
            trigger=trigger,
            plan=plan,
            required_tools=(*(required or ()), *tools) or required,
            max_steps=_read_number(values, "max_steps", 1, MOST_STEPS),
            token_budget=_read_number(values, "token_budget", 1, _MOST_TOKENS),
            preflight=_read_preflight(values.get("preflight")),
            notify=_read_flag(values, "notify_on_completion"),
            notify_interval_minutes=_read_number(values, "notify_interval_minutes", 0, MOST_MINUTES),
            missed=cast("MissedPolicy | None", values.get("if_missed")),
            enabled=_read_flag(values, "enabled"),
        )


def _split(given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """What is about time, wherever it stands, and the rest."""
    named = {_ALIASES.get(name, name): value for name, value in given.items() if value is not None}
    nested = named.pop("trigger_config", None)
    if isinstance(nested, str):
        try:
            nested = cast("object", json.loads(nested))
        except ValueError:
            nested = {"when": nested}
    inner = cast("JsonObject", nested) if isinstance(nested, dict) else {}
    times = {_ALIASES.get(name, name): value for name, value in inner.items() if value is not None}
    times |= {name: named.pop(name) for name in _TIMES if name in named}
    return named, times


def _read_schedule(times: Mapping[str, object], now: datetime, time_zone: ZoneInfo) -> Schedule | None:
    too_long = next(
        (name for name in ("when", "at", "schedule", "timezone") if len(str(times.get(name))) > _LONGEST), None
    )
    if too_long is not None:
        raise InvalidArguments(f"{too_long} is too long.", hint=f"It has at most {_LONGEST} characters.")
    zone = find_time_zone(str(times["timezone"])) if times.get("timezone") else time_zone
    minutes = _read_number(times, "in_minutes", 1, MOST_MINUTES)
    hours = _read_number(times, "in_hours", 1, MOST_MINUTES // 60)
    found: list[Schedule] = []
    if minutes is not None or hours is not None:
        found.append(OneMoment(now + timedelta(minutes=minutes or 0, hours=hours or 0)))
    if times.get("at"):
        found.append(read_moment(str(times["at"]), now, zone))
    if times.get("schedule"):
        found.append(parse_cron(str(times["schedule"]), zone))
    every = _read_number(times, "interval_minutes", 1, MOST_MINUTES)
    if every is not None:
        found.append(IntervalSchedule(every, now))
    if times.get("when"):
        found.append(read_when(str(times["when"]), now, zone))
    if len(found) > 1:
        raise InvalidArguments("It is said more than once when.", hint="Give one of when, at, in_minutes and schedule.")
    return found[0] if found else None


def _read_plan(values: Mapping[str, object]) -> tuple[SkillPlan | None, tuple[str, ...]]:
    """The call of a plan of one step. Of a longer one the tools: a model has to carry it out."""
    plan = values.get("execution_plan")
    if isinstance(plan, str):
        try:
            plan = cast("object", json.loads(plan))
        except ValueError:
            plan = None
    if isinstance(plan, dict):
        plan = [cast("object", plan)]
    if not isinstance(plan, list) or not plan:
        return None, ()
    steps = [cast("JsonObject", step) for step in cast("list[object]", plan) if isinstance(step, dict)]
    tools = tuple(str(step.get("toolName") or "") for step in steps)
    if not all(tools) or len(steps) != len(cast("list[object]", plan)):
        raise InvalidArguments("A step of execution_plan names no tool.", hint="Each step has toolName and parameters.")
    if len(steps) > 1:
        return None, tools
    arguments = steps[0].get("parameters") or JsonObject()
    if not isinstance(arguments, dict):
        raise InvalidArguments("The parameters of a step are no object.", hint="Give them by name.")
    return SkillPlan(tools[0], cast("JsonObject", arguments)), ()


def _read_preflight(given: object) -> JsonObject | None:
    """`{tool, arguments, window_minutes}`; in the arguments `{now}` and `{until}` stand for the window."""
    if given is None:
        return None
    call = cast("JsonObject", given) if isinstance(given, dict) else {}
    tool, minutes = call.get("tool"), call.get("window_minutes") or 60
    arguments = cast("object", call.get("arguments") or {})
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise InvalidArguments("preflight names no tool.", hint="Give tool, arguments and window_minutes.")
    if not isinstance(minutes, int) or not 0 < minutes <= _MOST_WINDOW:
        raise InvalidArguments(f"window_minutes is {minutes}.", hint=f"It is a whole number up to {_MOST_WINDOW}.")
    return {"tool": tool, "arguments": arguments, "window_minutes": minutes}


def _make_name(text: str | None) -> str | None:
    """The first words of what it is about."""
    if text is None:
        return None
    line = _read_name(text) or ""
    return line if len(line) <= _NAME_CHARS else line[:_NAME_CHARS].rsplit(" ", 1)[0]


def _read_name(value: object) -> str | None:
    """On one line, without signs that nobody sees, and without a slash, because it stands in addresses."""
    text = "".join(sign if sign.isprintable() and sign != "/" else " " for sign in str(value or ""))
    return " ".join(text.split()) or None


def _read_text(value: object) -> str | None:
    return str(value).strip() or None if value is not None else None


def _read_list(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return tuple(part.strip() for part in value.strip("[]").replace('"', "").split(",") if part.strip())
    return tuple(str(one) for one in cast("list[object]", value)) if isinstance(value, list) else (str(value),)


def _read_number(values: Mapping[str, object], name: str, least: int, most: int) -> int | None:
    value = values.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(str(value))
    except ValueError:
        number = float("nan")
    if not (number.is_integer() and least <= number <= most):
        raise InvalidArguments(f"{name} is {value}.", hint=f"It is a whole number from {least} to {most}.")
    return int(number)


def _read_flag(values: Mapping[str, object], name: str) -> bool | None:
    value = values.get(name)
    if value is None or isinstance(value, bool):
        return value
    return str(value).strip().casefold() in ("true", "yes", "1", "on")
