"""`spawn_subagent`, `queue_task` and `get_job_status`: work an agent delegates (AGT-04, RTR-05)."""

from __future__ import annotations

from annabelle.agents.subagent import TOKEN_BUDGET, SubagentRequest
from annabelle.core.errors import AnnabelleError, NotAllowed, RetryByModel
from annabelle.core.result_text import for_model, make_result
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trust import Trust
from annabelle.hub.tasks.background_calls import QUEUE, BackgroundCalls, parse_queued_call
from annabelle.hub.tasks.subagents import AT_ONCE
from annabelle.hub.tasks.task_runner import TaskRunner, make_task_id
from annabelle.store.tasks import NewTask
from annabelle.toolbox.catalogue import (
    OWN_WORDS,
    READS,
    WRITES_ONCE,
    NativeTool,
    native_tool,
    number_parameter,
    text_parameter,
)
from annabelle.toolbox.facade import Toolbox

_LONGEST_MINUTES = 30
# Extra time for a start, a stop or a full disk.
_SLACK_SECONDS = 60.0
_NAME_CHARS = 80
_GLOBS: JsonObject = {"type": "array", "maxItems": 50, "items": text_parameter(200)}
# Calls that these tools lead to are each checked by policy.
_DELEGATES = WRITES_ONCE.model_copy(update={"open_world": True})


def spawn_subagent_tool(tasks: TaskRunner) -> NativeTool:
    """The same call id finds the same subagent, or its result."""

    @native_tool(
        "spawn_subagent",
        "Give a task to a temporary helper that works on its own and reports back. Waits for the result.",
        {
            "task": text_parameter(50_000, "All it needs to know: it does not see this conversation"),
            "allowedTools": {
                **_GLOBS,
                "description": "Only these of your tools, as in searcher_*; by default all of yours",
            },
            "deniedTools": {**_GLOBS, "description": "None of these"},
            "timeoutMinutes": {"type": "number", "minimum": 1, "maximum": _LONGEST_MINUTES, "default": 5},
            "model": {"type": "string", "maxLength": 200, "description": "Another model than yours"},
            "tokenBudget": number_parameter(1000, 1_000_000, TOKEN_BUDGET, "Tokens it may use in all"),
        },
        required=("task",),
        annotations=_DELEGATES,
        timeout_seconds=_LONGEST_MINUTES * 60 + 2 * _SLACK_SECONDS,
        answers=AnnabelleError,
    )
    async def spawn_subagent(arguments: JsonObject, context: CallContext) -> ToolResult:
        ask = SubagentRequest.model_validate(arguments)
        task = await tasks.begin(_subagent_task(ask, context), AT_ONCE)
        return await tasks.result(task, ask.seconds + _SLACK_SECONDS)

    return spawn_subagent


def _subagent_task(ask: SubagentRequest, context: CallContext) -> NewTask:
    if context.caller != "agent" or context.agent_id is None or context.message_id is None:
        raise NotAllowed("Only an agent can send a subagent, while it answers a message.")
    return NewTask(
        id=make_task_id(context),
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


def queue_task_tool(tasks: TaskRunner, calls: BackgroundCalls, toolbox: Toolbox) -> NativeTool:
    """The same call id finds the same task."""

    @native_tool(
        QUEUE,
        "Make one tool call in the background and go on at once; the user is told when it is over.",
        {
            "name": text_parameter(200, "What the user will know it by"),
            "action": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "description": "tool_call, or workflow for the same"},
                    "toolName": text_parameter(200),
                    "parameters": {"type": "object", "description": "The tool's arguments"},
                },
                "required": ["type"],
            },
        },
        required=("name", "action"),
        annotations=_DELEGATES,
        scan=OWN_WORDS,
        answers=AnnabelleError,
    )
    async def queue_task(arguments: JsonObject, context: CallContext) -> ToolResult:
        new = _queued_task(arguments, context)
        policy = calls.policy(context)
        tool = str(new.request["tool"])
        if all(spec.name != tool for spec in toolbox.tools(policy).tools):
            raise RetryByModel(f"There is no tool {tool} that could be queued.", hint="Use one of your own tools.")
        task = await tasks.begin(new)

        def render() -> str:
            ask = for_model("; get_job_status tells how it stands")
            return f"The task{for_model(f' {task.id}')} is {task.state}. Its result is told in this chat{ask}."

        return make_result(render, {"taskId": task.id, "state": task.state})

    return queue_task


def _queued_task(arguments: JsonObject, context: CallContext) -> NewTask:
    tool, handed = parse_queued_call(arguments, context)
    return NewTask(
        id=make_task_id(context),
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


def get_job_status_tool(tasks: TaskRunner) -> NativeTool:
    """Users see only their own tasks."""

    @native_tool(
        "get_job_status",
        "How a queued task stands, and its result.",
        {"taskId": text_parameter(60, "As queue_task gave it")},
        required=("taskId",),
        annotations=READS,
        answers=AnnabelleError,
    )
    async def get_job_status(arguments: JsonObject, context: CallContext) -> ToolResult:
        task = await tasks.status(str(arguments["taskId"]), context.user_id)
        waits = " It waits for the user's yes." if task.open and await tasks.is_waiting(task) else ""
        structured: JsonObject = {"taskId": task.id, "name": task.name, "state": task.state}
        result = None if task.result is None else ToolResult.model_validate(task.result)
        trust: Trust = "trusted" if result is None else result.trust
        if result is not None:
            structured["result"] = result.text
        text = f"The task “{task.name}” is {task.state}.{waits}" + ("" if result is None else f" {result.text}")
        return ToolResult(text=text, structured=structured, trust=trust)

    return get_job_status
