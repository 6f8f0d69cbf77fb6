"""`spawn_subagent`: an agent hands a task to a temporary helper and waits for its result (AGT-04)."""

from __future__ import annotations

from annabelle.core.errors import AnnabelleError, NotAllowed
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.subagents.brief import AT_ONCE, TOKEN_BUDGET, SubagentAsk
from annabelle.hub.subagents.tasks import Tasks, task_id_of
from annabelle.store.tasks import NewTask
from annabelle.toolbox.native import NativeTool

_LONGEST_MINUTES = 30
# Beside the time the task may take: a start, a stop, a full disk.
_SLACK_SECONDS = 60.0
_NAME_CHARS = 80
_GLOBS: JsonObject = {"type": "array", "maxItems": 50, "items": {"type": "string", "minLength": 1, "maxLength": 200}}
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "minLength": 1,
            "maxLength": 50_000,
            "description": "All it needs to know: it does not see this conversation",
        },
        "allowedTools": {
            **_GLOBS,
            "description": "Only these of your tools, as in searcher_*; by default all of yours",
        },
        "deniedTools": {**_GLOBS, "description": "None of these"},
        "timeoutMinutes": {"type": "number", "minimum": 1, "maximum": _LONGEST_MINUTES, "default": 5},
        "model": {"type": "string", "maxLength": 200, "description": "Another model than yours"},
        "tokenBudget": {
            "type": "integer",
            "minimum": 1000,
            "maximum": 1_000_000,
            "default": TOKEN_BUDGET,
            "description": "Tokens it may use in all",
        },
    },
    "required": ["task"],
    "additionalProperties": False,
}


def spawn_subagent_tool(tasks: Tasks) -> NativeTool:
    """The tool. The same call id finds the same subagent, or its result."""

    async def spawn(arguments: JsonObject, context: CallContext) -> ToolResult:
        ask = SubagentAsk.model_validate(arguments)
        try:
            task = await tasks.begin(_task(ask, context), AT_ONCE)
            return await tasks.result(task, ask.seconds + _SLACK_SECONDS)
        except AnnabelleError as error:
            return ToolResult.failure(error.body(context.trace_id))

    # Whatever it does passes the doors itself, one call after the other.
    annotations = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=True)
    return NativeTool(
        "spawn_subagent",
        "Give a task to a temporary helper that works on its own and reports back. Waits for the result.",
        _SCHEMA,
        spawn,
        annotations,
        timeout_seconds=_LONGEST_MINUTES * 60 + 2 * _SLACK_SECONDS,
    )


def _task(ask: SubagentAsk, context: CallContext) -> NewTask:
    if context.caller != "agent" or context.agent_id is None or context.message_id is None:
        raise NotAllowed("Only an agent can send a subagent, while it answers a message.")
    return NewTask(
        id=task_id_of(context),
        kind="subagent",
        user_id=context.user_id,
        name=" ".join(ask.task.split())[:_NAME_CHARS],
        request={
            "ask": ask.model_dump(mode="json"),
            "call_id": context.call_id,
            "context": context.model_copy(update={"call_id": None}).model_dump(mode="json"),
        },
        agent_id=context.agent_id,
        thread_id=context.thread_id,
        message_id=context.message_id,
    )
