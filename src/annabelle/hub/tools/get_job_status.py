"""`get_job_status`: how a task stands that was queued, or given to a subagent (RTR-05)."""

from __future__ import annotations

from annabelle.core.errors import AnnabelleError
from annabelle.core.memory import Trust
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.subagents.tasks import Tasks
from annabelle.toolbox.native import NativeTool

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "taskId": {"type": "string", "minLength": 1, "maxLength": 60, "description": "As queue_task gave it"}
    },
    "required": ["taskId"],
    "additionalProperties": False,
}


def get_job_status_tool(tasks: Tasks) -> NativeTool:
    """The tool: each person sees their own tasks."""

    async def look(arguments: JsonObject, context: CallContext) -> ToolResult:
        try:
            task = await tasks.status(str(arguments["taskId"]), context.user_id)
            waits = " It waits for the user's yes." if task.open and await tasks.waits(task) else ""
        except AnnabelleError as error:
            return ToolResult.failure(error.body(context.trace_id))
        structured: JsonObject = {"taskId": task.id, "name": task.name, "state": task.state}
        result = None if task.result is None else ToolResult.model_validate(task.result)
        trust: Trust = "trusted" if result is None else result.trust
        if result is not None:
            structured["result"] = result.text
        text = f"The task “{task.name}” is {task.state}.{waits}" + ("" if result is None else f" {result.text}")
        return ToolResult(text=text, structured=structured, trust=trust)

    annotations = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
    return NativeTool("get_job_status", "How a queued task stands, and its result.", _SCHEMA, look, annotations)
