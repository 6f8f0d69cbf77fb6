"""`memory_backfill_extract_facts`: learn facts from conversations nobody has looked through yet."""

from __future__ import annotations

from typing import cast

from annabelle.core.errors import AnnabelleError
from annabelle.core.ids import new_id
from annabelle.core.memory import Trust
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.flows.learn_facts import LearnFacts, Learnt, ToLearn
from annabelle.hub.memory.owners import whose
from annabelle.toolbox.native import OWN_WORDS, NativeTool

_SECONDS = 600.0
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "agent_id": {"type": "string", "maxLength": 100, "description": "Whose memory; by default your own"},
        "batch_size": {
            "type": "integer",
            "minimum": 1,
            "maximum": 50,
            "default": 10,
            "description": "How many conversations to look through",
        },
    },
    "additionalProperties": False,
}


def backfill_tool(learn: LearnFacts, agents: AgentManager) -> NativeTool:
    """The tool under its old name; a call id makes a repeat find the same run."""

    async def backfill(arguments: JsonObject, context: CallContext) -> ToolResult:
        try:
            owned = whose(context, cast("str | None", arguments.get("agent_id")), agents)
            wanted = ToLearn(
                learn_id=f"learn:{context.call_id or new_id('call')}",
                user_id=owned.user_id,
                agent_id=owned.agent_id,
                trace_id=context.trace_id or new_id("tr"),
                limit=cast("int", arguments.get("batch_size", 10)),
                tries=1,
            )
            await learn.begin(wanted)
            learnt = await learn.result(wanted.learn_id, _SECONDS - 10)
        except AnnabelleError as error:
            return ToolResult.failure(error.body(context.trace_id))
        # What was learnt comes back in it, and may be somebody else's words.
        trust: Trust = "untrusted" if any(fact.trust == "untrusted" for fact in learnt.facts) else "trusted"
        structured: JsonObject = {**learnt.model_dump(mode="json"), "trust": trust}
        return ToolResult(text=told(learnt), structured=structured, trust=trust)

    annotations = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)
    return NativeTool(
        "memory_backfill_extract_facts",
        "Learn facts from stored conversations that nobody has looked through for facts yet.",
        _SCHEMA,
        backfill,
        annotations,
        group="Memory",
        timeout_seconds=_SECONDS,
        scan=OWN_WORDS,
    )


def told(learnt: Learnt) -> str:
    """What a run came to, in words."""
    if learnt.refused is not None and not learnt.turns:
        return f"Nothing was learnt: {learnt.refused}"
    if not learnt.turns:
        return "There is no conversation that was not looked through yet."
    new = [fact for fact in learnt.facts if fact.status != "known"]
    lines = [f"{learnt.turns} conversations were looked through; {len(new)} new facts."]
    return "\n".join([*lines, *(f"- {fact.fact} (fact {fact.fact_id})" for fact in new)])
