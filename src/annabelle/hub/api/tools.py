"""`/tools/list` and `/tools/call`: every tool, for people and for agents."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from fastapi import APIRouter, Request, Response

from annabelle.core.contract import CLIENT_HEADER, TERMINAL, TOOLS_VERSION_HEADER, ToolCall, ToolList
from annabelle.core.errors import AnnabelleError, InvalidArguments, NotAllowed, TurnCancelled
from annabelle.core.messages import OWNER
from annabelle.core.tools import CallContext, ToolResult, ToolSpec
from annabelle.core.trace import current_trace
from annabelle.hub.api.endpoint import Caller, TheHub, document_body, error_responses, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.security.identities import CallerIdentity, tool_refusal
from annabelle.hub.trust.call_records import label_provenance, note_foreign_content
from annabelle.toolbox.catalogue import AgentPolicy

T = TypeVar("T")
_SETTLE_SECONDS = 5.0


async def run_while_connected(request: Request, work: Coroutine[object, object, T]) -> T:
    """The result of the work. When whoever asked hangs up (Ctrl-C in the terminal), the work is cancelled."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_wait_disconnect(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise TurnCancelled("Whoever asked for it has hung up, so it was stopped.")
        return working.result()
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working}, timeout=_SETTLE_SECONDS)


async def _wait_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass  # what is left of a body that was read already


router = APIRouter(tags=["tools"])
_RETRIEVE, _PROFILE = "memory_retrieve_memories", "memory_get_profile"


@router.get(
    "/tools/list", operation_id="list_tools", responses=error_responses(), response_model=ToolList, summary="All tools"
)
async def list_tools(hub: TheHub, caller: Caller) -> Response:
    """The tools this caller may use: all for the owner, those its policy allows for an agent."""
    await hub.base.lifecycle.wait_ready()
    tools = _tools_for(hub, caller)
    return _json(tools.model_dump_json(), tools.version)


@router.post(
    "/tools/call",
    operation_id="call_tool",
    responses=error_responses(404, 409, 502, 504),
    response_model=ToolResult,
    openapi_extra=document_body(ToolCall),
    summary="Call a tool",
)
async def call_tool(request: Request) -> Response:
    """Arguments are checked against the tool's schema before any server is touched. A tool that ran and failed
    answers 200 with `is_error`. Nothing a caller sends can stand for an approval."""
    hub: HubContext = request.app.state.hub
    caller: CallerIdentity = request.state.identity
    call = await read_body(request, ToolCall)
    await hub.base.lifecycle.wait_ready()
    context = await _call_context(hub, caller, call, request.headers.get(CLIENT_HEADER))
    policy = _authorize(hub, caller, context, call)
    if hub.toolbox.wants_provenance(call.name):
        context = await label_provenance(hub.storage.database, context, _spec(hub, caller, call.name), call.arguments)
    hub.storage.traces.write("tool.called", {"tool": call.name, "call_id": call.call_id, "caller": caller.kind})
    try:
        calling = hub.toolbox.call(call.name, call.arguments, context, policy)
        # An agent that goes away comes back for the result of its call id; a person who hangs up does not want it.
        result = await (calling if caller.kind == "agent" else run_while_connected(request, calling))
    except AnnabelleError as error:
        hub.storage.traces.write("tool.failed", {"tool": call.name, "call_id": call.call_id, "code": error.code})
        raise
    await note_foreign_content(hub.storage.database, context, call.name, result)
    hub.storage.traces.write(
        "tool.finished",
        {"tool": call.name, "call_id": call.call_id, "is_error": result.is_error, "duration_ms": result.duration_ms},
    )
    # With each answer comes the version of the list, so that an agent sees at once when it changes (RTR-06).
    return _json(result.model_dump_json(), _tools_for(hub, caller).version)


def _json(text: str, tools_version: str) -> Response:
    return Response(text, headers={TOOLS_VERSION_HEADER: tools_version}, media_type="application/json")


def _tools_for(hub: HubContext, caller: CallerIdentity) -> ToolList:
    """What this caller may use: all for the owner, what is theirs for other people, what its policy allows an agent."""
    policy = _agent_policy(hub, caller)
    if policy is not None:
        return hub.toolbox.tools(policy)
    if caller.kind == "owner":
        return hub.toolbox.tools()
    return hub.toolbox.tools(hub.security.users.policy(caller.user_id, hub.toolbox.tools().tools, in_turn=False), "api")


def _spec(hub: HubContext, caller: CallerIdentity, name: str) -> ToolSpec | None:
    return next((spec for spec in _tools_for(hub, caller).tools if spec.name == name), None)


def _authorize(hub: HubContext, caller: CallerIdentity, context: CallContext, call: ToolCall) -> AgentPolicy | None:
    """What an agent's policy allows; refuses what the person it is done for may not have done (I-30)."""
    needed = {call.name, *_implied_tools(call)}
    if context.user_id != OWNER:
        there = hub.toolbox.tools().tools
        theirs = hub.security.users.policy(context.user_id, there, in_turn=caller.kind == "agent")
        for name in sorted(needed):
            if not theirs.permits(name) and any(spec.name == name for spec in there):
                raise tool_refusal(context.user_id, name)
    policy = _agent_policy(hub, caller)
    for name in _implied_tools(call):
        if policy is not None and not policy.permits(name):
            raise NotAllowed(f"This agent may not use {name}, and so not have its result brought along.")
    return policy


def _implied_tools(call: ToolCall) -> tuple[str, ...]:
    """Tools whose result a call brings along: a search in memory can bring the profile."""
    wanted = call.name == _RETRIEVE and call.arguments.get("include_profile")
    return (_PROFILE,) if wanted else ()


def _agent_policy(hub: HubContext, caller: CallerIdentity) -> AgentPolicy | None:
    """An agent's own policy, by the config in force; a subagent's lies inside that of the agent it works for."""
    if caller.agent_id is None:
        return None
    policy, errand = hub.agents.registry.policy(caller.agent_id), caller.subagent_scope
    return policy if errand is None else policy.narrow(errand.allowed, errand.denied)


async def _call_context(hub: HubContext, caller: CallerIdentity, call: ToolCall, client: str | None) -> CallContext:
    if caller.agent_id is None:
        if call.call_id is not None or call.message_id is not None:
            raise NotAllowed("call_id and message_id are for agents only.", field="call_id")
        # Whoever is no agent works on the memory of the agent that answers them (catalogue 14.1).
        agent_id = hub.agents.registry.config.default.agent_id
        # The terminal may do no more than any other client: its name is kept to tell where something was said.
        return CallContext(
            caller="cli" if client == TERMINAL else "api",
            agent_id=agent_id,
            user_id=caller.user_id,
            trace_id=current_trace(),
        )
    if call.message_id is None:
        raise InvalidArguments("message_id is missing: an agent calls tools for a message.", field="message_id")
    if caller.subagent_scope is not None and call.message_id != caller.subagent_scope.turn_id:
        raise NotAllowed("A subagent acts for its own task only.", field="message_id")
    # An agent's call ids belong to its own turns, so that it can not ask for the result of another's call.
    if call.call_id is not None and not call.call_id.startswith(f"{call.message_id}:"):
        raise InvalidArguments("call_id does not belong to this message.", field="call_id")
    turn = await hub.conversations.turns.context(call.message_id, caller.agent_id)
    # Nobody talks with a subagent, so it can not be the one to ask.
    askable = caller.subagent_scope is None and call.call_id is not None
    own = {"call_id": call.call_id, "trace_id": current_trace(), "askable": askable, "judged": False}
    return turn.model_copy(update=own)
