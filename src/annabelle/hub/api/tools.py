"""`GET /tools/list` and `POST /tools/call`: every tool, for people and for agents, behind one door."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from annabelle.core.contract import TOOLS_VERSION_HEADER, ToolCall, ToolList
from annabelle.core.errors import AnnabelleError, InvalidArguments, NotAllowed
from annabelle.core.tools import CallContext, ToolResult
from annabelle.core.trace import current_trace
from annabelle.hub.api.documented import Caller, TheHub, body_of, failures, read_body
from annabelle.hub.security.identities import Identity
from annabelle.hub.services import Hub

router = APIRouter(tags=["tools"])


@router.get(
    "/tools/list", operation_id="list_tools", responses=failures(), response_model=ToolList, summary="All tools"
)
async def list_tools(hub: TheHub, caller: Caller) -> Response:
    """The tools this caller may use: all for the owner, those its policy allows for an agent."""
    await hub.progress.wait_ready()
    policy = hub.agents.policy(caller.agent_id) if caller.agent_id is not None else None
    tools = hub.toolbox.tools(policy)
    return _json(tools.model_dump_json(), tools.version)


@router.post(
    "/tools/call",
    operation_id="call_tool",
    responses=failures(404, 409, 502, 504),
    response_model=ToolResult,
    openapi_extra=body_of(ToolCall),
    summary="Call a tool",
)
async def call_tool(request: Request) -> Response:
    """Arguments are checked against the tool's schema before any server is touched. A tool that ran and failed
    answers 200 with `is_error`. Nothing a caller sends can stand for an approval."""
    hub: Hub = request.app.state.hub
    caller: Identity = request.state.identity
    call = await read_body(request, ToolCall)
    await hub.progress.wait_ready()
    context = await _context(hub, caller, call)
    policy = hub.agents.policy(caller.agent_id) if caller.agent_id is not None else None
    hub.traces.write("tool.called", {"tool": call.name, "call_id": call.call_id, "caller": caller.kind})
    try:
        result = await hub.toolbox.call(call.name, call.arguments, context, policy)
    except AnnabelleError as error:
        hub.traces.write("tool.failed", {"tool": call.name, "call_id": call.call_id, "code": error.code})
        raise
    hub.traces.write(
        "tool.finished",
        {"tool": call.name, "call_id": call.call_id, "is_error": result.is_error, "duration_ms": result.duration_ms},
    )
    # With each answer comes the version of the list, so that an agent sees at once when it changes (RTR-06).
    return _json(result.model_dump_json(), hub.toolbox.tools(policy).version)


def _json(text: str, tools_version: str) -> Response:
    return Response(text, headers={TOOLS_VERSION_HEADER: tools_version}, media_type="application/json")


async def _context(hub: Hub, caller: Identity, call: ToolCall) -> CallContext:
    if caller.agent_id is None:
        if call.call_id is not None or call.message_id is not None:
            raise NotAllowed("call_id and message_id are for agents only.", field="call_id")
        return CallContext(caller="api", user_id=caller.user_id, trace_id=current_trace())
    if call.message_id is None:
        raise InvalidArguments("message_id is missing: an agent calls tools for a message.", field="message_id")
    # An agent's call ids belong to its own turns, so that it can not ask for the result of another's call.
    if call.call_id is not None and not call.call_id.startswith(f"{call.message_id}:"):
        raise InvalidArguments("call_id does not belong to this message.", field="call_id")
    turn = await hub.turns.context(call.message_id, caller.agent_id)
    return turn.model_copy(update={"call_id": call.call_id, "trace_id": current_trace()})
