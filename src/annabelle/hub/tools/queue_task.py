"""`queue_task`: one tool call that goes on in the background, over restarts, and is told when it is over (RTR-05)."""

from __future__ import annotations

from annabelle.core.errors import AnnabelleError, RetryByModel
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.subagents.background import BackgroundCalls
from annabelle.hub.subagents.queueing import QUEUE, call_in
from annabelle.hub.subagents.tasks import Tasks, task_id_of
from annabelle.store.tasks import NewTask
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.native import OWN_WORDS, NativeTool

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "What the user will know it by"},
        "action": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "description": "tool_call"},
                "toolName": {"type": "string", "minLength": 1, "maxLength": 200},
                "parameters": {"type": "object", "description": "The tool's arguments"},
            },
            "required": ["type"],
        },
    },
    "required": ["name", "action"],
    "additionalProperties": False,
}


def queue_task_tool(tasks: Tasks, calls: BackgroundCalls, toolbox: Toolbox) -> NativeTool:
    """The tool. The same call id finds the same task."""

    async def queue(arguments: JsonObject, context: CallContext) -> ToolResult:
        try:
            new = _task(arguments, context)
            policy = calls.policy(context)
            tool = str(new.request["tool"])
            if all(spec.name != tool for spec in toolbox.tools(policy).tools):
                raise RetryByModel(f"There is no tool {tool} that could be queued.", hint="Use one of your own tools.")
            task = await tasks.begin(new)
        except AnnabelleError as error:
            return ToolResult.failure(error.body(context.trace_id))
        text = (
            f"The task {task.id} is {task.state}. Its result is told in this chat; get_job_status tells how it stands."
        )
        return ToolResult(text=text, structured={"taskId": task.id, "state": task.state})

    annotations = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=True)
    return NativeTool(
        QUEUE,
        "Make one tool call in the background and go on at once; the user is told when it is over.",
        _SCHEMA,
        queue,
        annotations,
        scan=OWN_WORDS,
    )


def _task(arguments: JsonObject, context: CallContext) -> NewTask:
    tool, handed = call_in(arguments)
    return NewTask(
        id=task_id_of(context),
        kind="tool_call",
        user_id=context.user_id,
        name=str(arguments["name"]),
        request={
            "tool": tool,
            "arguments": handed,
            "context": context.model_copy(update={"call_id": None}).model_dump(mode="json"),
            "queued_as": context.call_id,
        },
        agent_id=context.agent_id if context.caller == "agent" else None,
        thread_id=context.thread_id,
        message_id=context.message_id,
    )
