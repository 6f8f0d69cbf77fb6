"""`memory_store_skill` and the other tools for what Annabelle does by itself (SKL-01, SKL-09, MEM-11)."""

from __future__ import annotations

from annabelle.agents.fire_outcome import is_reminder
from annabelle.core.errors import AnnabelleError, RetryByModel
from annabelle.core.result_text import for_model, make_result
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.skills.skill_service import SkillOwner, SkillService, format_moment
from annabelle.store.skills import StoredFire, StoredSkill
from annabelle.toolbox.catalogue import OWN_WORDS, READS, WRITES_ONCE, NativeTool, native_tool, text_parameter

_GROUP = "Skills"
_WHICH: JsonObject = {"type": ["integer", "string"], "description": "The number or the name of the skill"}
_MAKES = WRITES_ONCE.model_copy(update={"idempotent": False})
"""A repeat would make a second one, or delete another of that name."""
_FIELDS: JsonObject = {
    "name": text_parameter(200, "What the user knows it by; by default the first words of it"),
    "message": text_parameter(4_000, "For a reminder: what to say to the user, word for word"),
    "when": text_parameter(200, "In words: in 10 minutes, tomorrow at 9, every weekday at 8:30"),
    "description": text_parameter(1_000, "What it is for"),
    "instructions": text_parameter(8_000, "What to do"),
    "trigger_type": {"type": "string", "enum": ["cron", "manual", "event"]},
    "trigger_config": {
        "type": "object",
        "description": "schedule (cron, 5 fields) with timezone, or at (ISO 8601), in_minutes or interval_minutes",
    },
    "execution_plan": {
        "type": "array",
        "maxItems": 20,
        "description": "The one call it makes, without a model",
        "items": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "toolName": {"type": "string"},
                "parameters": {"type": "object"},
                "dependsOn": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["toolName"],
        },
    },
    "required_tools": {"type": ["array", "string"], "items": {"type": "string"}},
    "max_steps": {"type": ["integer", "string"]},
    "token_budget": {"type": ["integer", "string"], "description": "The most one run may use"},
    "preflight": {
        "type": "object",
        "description": "A call that shows whether there is anything to do: tool, arguments, window_minutes",
    },
    "notify_on_completion": {"type": ["boolean", "string"], "description": "Tell the user what came of it"},
    "notify_interval_minutes": {"type": ["integer", "string"], "description": "At most one message in so many minutes"},
    "if_missed": {"type": "string", "enum": ["run", "skip", "list"], "description": "Where it was not running then"},
    "enabled": {"type": "boolean"},
    # Models give these here, too.
    "schedule": {"type": "string"},
    "timezone": {"type": "string"},
    "at": {"type": "string"},
    "in_minutes": {"type": ["integer", "string"]},
    "in_hours": {"type": ["integer", "string"]},
    "interval_minutes": {"type": ["integer", "string"]},
}


def skill_tools(service: SkillService) -> list[NativeTool]:
    return [_store(service), _list(service), _get(service), _update(service), _delete(service)]


def _store(service: SkillService) -> NativeTool:
    @native_tool(
        "memory_store_skill",
        "Remind the user at a time, or make a call by itself, once or again and again.",
        _FIELDS,
        annotations=_MAKES,
        group=_GROUP,
        scan=OWN_WORDS,
        answers=AnnabelleError,
    )
    async def store(arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.thread_id is None or context.agent_id is None:
            raise RetryByModel(
                "A skill is made in a conversation, to which it reports.", hint="Say it in a chat: annabelle chat"
            )
        owner = SkillOwner(context.user_id, context.agent_id, context.thread_id)
        skill = await service.add(arguments, owner, message_id=context.message_id)
        unknown = service.unknown_tools(skill)
        structured: JsonObject = _to_json(service, skill)
        if unknown:
            structured["warning"] = f"There is no tool {', '.join(unknown)} now."

        def render() -> str:
            what = "I will remind you" if is_reminder(skill) else f"“{skill.name}” runs"
            warning = f" {structured['warning']}" if unknown else ""
            return f"{what} {service.describe(skill)}: {skill.name}.{for_model(f' (skill {skill.id})')}{warning}"

        return make_result(render, structured)

    return store


def _list(service: SkillService) -> NativeTool:
    @native_tool(
        "memory_list_skills",
        "The user's reminders and everything else that runs by itself.",
        {"enabled": {"type": ["boolean", "string"], "description": "Only those that are switched on, or off"},
         "trigger_type": {"type": "string", "enum": ["cron", "manual", "event"]}},
        annotations=READS,
        group=_GROUP,
        answers=AnnabelleError,
    )  # fmt: skip
    async def list_skills(arguments: JsonObject, context: CallContext) -> ToolResult:
        wanted, kind = arguments.get("enabled"), arguments.get("trigger_type")
        found = [
            skill
            for skill in await service.list(context.user_id)
            if (wanted is None or (str(wanted).casefold() == "true") is skill.enabled)
            and kind in (None, skill.trigger_type)
        ]

        def render() -> str:
            return (
                "\n".join(_line(service, skill) for skill in found)
                or "There are no reminders, and nothing runs by itself."
            )

        return make_result(render, {"skills": [_to_json(service, skill) for skill in found]})

    return list_skills


def _get(service: SkillService) -> NativeTool:
    @native_tool(
        "memory_get_skill",
        "One skill: when it runs, what it does and what came of it last.",
        {"skill_id": _WHICH},
        required=("skill_id",),
        annotations=READS,
        group=_GROUP,
        answers=AnnabelleError,
    )
    async def get(arguments: JsonObject, context: CallContext) -> ToolResult:
        skill = await service.get(_which(arguments), context.user_id)
        past = await service.history(context.user_id, skill.id, 5)

        def render() -> str:
            runs = [f"{format_moment(one.due_at, service.time_zone)}: {one.state} {_said(one)}".strip() for one in past]
            return "\n".join([_line(service, skill), *([skill.instructions] if skill.instructions else []), *runs])

        foreign = any((one.result or {}).get("trust") == "untrusted" for one in past)
        shown = make_result(render, _to_json(service, skill))
        return shown.model_copy(update={"trust": "untrusted" if foreign else "trusted"})

    return get


def _update(service: SkillService) -> NativeTool:
    @native_tool(
        "memory_update_skill",
        "Change a skill: another time, other words, switch it on or off.",
        {"skill_id": _WHICH, **_FIELDS},
        required=("skill_id",),
        annotations=WRITES_ONCE,
        group=_GROUP,
        scan=OWN_WORDS,
        answers=AnnabelleError,
    )
    async def update(arguments: JsonObject, context: CallContext) -> ToolResult:
        given = {name: value for name, value in arguments.items() if name != "skill_id"}
        skill = await service.update(_which(arguments), given, context.user_id)
        return make_result(lambda: _line(service, skill), _to_json(service, skill))

    return update


def _delete(service: SkillService) -> NativeTool:
    @native_tool(
        "memory_delete_skill",
        "Delete a reminder or another skill for good.",
        {"skill_id": _WHICH},
        required=("skill_id",),
        annotations=_MAKES.model_copy(update={"destructive": True}),
        group=_GROUP,
        answers=AnnabelleError,
    )
    async def delete(arguments: JsonObject, context: CallContext) -> ToolResult:
        skill = await service.delete(_which(arguments), context.user_id)
        return make_result(lambda: f"Deleted: {skill.name}.", _to_json(service, skill))

    return delete


def _said(fire: StoredFire) -> str:
    return "" if fire.result is None else str(fire.result.get("text") or "")


def _which(arguments: JsonObject) -> str | int:
    named = arguments["skill_id"]
    return named if isinstance(named, int) else str(named)


def _line(service: SkillService, skill: StoredSkill) -> str:
    off = "" if skill.enabled else f" (off{f': {skill.disabled_why}' if skill.disabled_why else ''})"
    return f"{skill.name}{for_model(f' (skill {skill.id})')} – {service.describe(skill)}{off}"


def _to_json(service: SkillService, skill: StoredSkill) -> JsonObject:
    due = None if skill.next_due is None else skill.next_due.astimezone(service.time_zone).isoformat()
    return {
        "skill_id": skill.id,
        "name": skill.name,
        "when": service.describe(skill),
        "enabled": skill.enabled,
        "next_due": due,
        "trigger_type": skill.trigger_type,
        "trigger_config": skill.trigger,
        "plan": skill.plan,
        "required_tools": skill.required_tools,
    }
