"""`memory_synthesize_facts`: merge facts that say the same, and drop those that say nothing any more."""

from __future__ import annotations

from typing import cast, get_args

from annabelle.core.errors import AnnabelleError
from annabelle.core.memory import FactCategory
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.memory.memory_tools import Tidied
from annabelle.hub.memory.owners import whose
from annabelle.hub.memory.tidying import NEXT, Plan, Tidying
from annabelle.toolbox.native import OWN_WORDS, NativeTool

_SECONDS = 600.0
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "agent_id": {"type": "string", "maxLength": 100, "description": "Whose memory; by default your own"},
        "category": {"enum": list(get_args(FactCategory)), "description": "Only facts of this category"},
        "max_facts_per_category": {
            "type": "integer",
            "minimum": 2,
            "maximum": 200,
            "default": 100,
            "description": "How many facts of each category to look at",
        },
        "preview": {"type": "boolean", "default": False, "description": "Only say what would be done"},
    },
    "additionalProperties": False,
}


def synthesize_tool(tidying: Tidying, agents: AgentManager) -> NativeTool:
    """The tool under its old name."""

    async def synthesize(arguments: JsonObject, context: CallContext) -> ToolResult:
        try:
            owned = whose(context, cast("str | None", arguments.get("agent_id")), agents)
            category = cast("FactCategory | None", arguments.get("category"))
            plan = await tidying.plan(owned, category, cast("int", arguments.get("max_facts_per_category", 100)))
            if arguments.get("preview") is True:
                return _told(plan, None)
            return _told(plan, await tidying.apply(owned, plan.actions, plan.planned_by))
        except AnnabelleError as error:
            return ToolResult.failure(error.body(context.trace_id))

    annotations = ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=False)
    return NativeTool(
        "memory_synthesize_facts",
        "Tidy what is remembered: merge facts that say the same and drop what is outdated. It can be undone.",
        _SCHEMA,
        synthesize,
        annotations,
        group="Memory",
        timeout_seconds=_SECONDS,
        scan=OWN_WORDS,
    )


def _told(plan: Plan, done: Tidied | None) -> ToolResult:
    structured: JsonObject = {
        "actions": [action.model_dump(mode="json") for action in plan.actions],
        "planned_by": plan.planned_by,
        "refused": plan.refused,
        "applied": done is not None and bool(plan.actions),
        "change_id": done.change_id if done is not None else None,
        # Remembered words come back in it, and those may be somebody else's.
        "trust": "untrusted" if any(fact.trust == "untrusted" for fact in plan.facts) else "trusted",
    }
    if not plan.actions:
        text = "There is nothing to tidy."
    else:
        what = "Would do" if done is None else "Done"
        text = "\n".join([f"{what}, planned by {_planner(plan)}:", *(f"- {line}" for line in plan.lines())])
    if done is not None and done.change_id is not None:
        text += f"\nThis is change {done.change_id}. {NEXT}"
    if done is not None and done.refused:
        text += "\nNot done: " + " ".join(done.refused)
    trust = "untrusted" if structured["trust"] == "untrusted" else "trusted"
    return ToolResult(text=text, structured=structured, trust=trust)


def _planner(plan: Plan) -> str:
    return "the model" if plan.planned_by == "model" else plan.planned_by
