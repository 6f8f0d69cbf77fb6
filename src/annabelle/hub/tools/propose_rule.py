"""`propose_rule`: an agent writes down a rule its user has stated in other words; only the user can confirm it."""

from __future__ import annotations

from annabelle.core.errors import AnnabelleError, RetryByModel
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.rules.rules import Place, Rules, reading
from annabelle.toolbox.native import OWN_WORDS, NativeTool

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "rule": {
            "type": "string",
            "minLength": 1,
            "maxLength": 300,
            "description": 'As "always ask before deleting mail" or "never send anything to Bob"',
        }
    },
    "required": ["rule"],
    "additionalProperties": False,
}


def propose_rule_tool(rules: Rules) -> NativeTool:
    async def propose(arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.thread_id is None or context.message_id is None:
            error = RetryByModel("A rule can be proposed in a conversation only.")
            return ToolResult.failure(error.body(context.trace_id))
        place = Place(context.user_id, context.thread_id, context.message_id)
        try:
            rule = await rules.propose(str(arguments["rule"]), place)
        except AnnabelleError as error:
            return ToolResult.failure(error.body(context.trace_id))
        structured: JsonObject = {"rule_id": rule.id, "state": rule.state}
        if rule.state != "proposed":
            return ToolResult(text=f"This rule holds already. {reading(rule)}", structured=structured)
        text = f"Proposed, not yet in force. {reading(rule)} The user confirms it: annabelle rules confirm {rule.id}"
        return ToolResult(text=text, structured=structured)

    annotations = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)
    description = (
        "Propose a standing rule the user has stated: what to ask about first, or never to do. "
        "The user confirms it; you can not."
    )
    return NativeTool("propose_rule", description, _SCHEMA, propose, annotations, scan=OWN_WORDS)
