"""`/tools/list` and `/tools/call`: every tool, for people and agents."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from fastapi import Request, Response

from annabelle.core.contract import CLIENT_HEADER, TOOLS_VERSION_HEADER, ToolCall, ToolList
from annabelle.core.errors import AnnabelleError, TurnCancelled
from annabelle.core.tools import ToolResult
from annabelle.hub.api.endpoint import ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.security.identities import CallerIdentity
from annabelle.hub.trust.call_records import label_provenance, note_foreign_content

T = TypeVar("T")
_SETTLE_SECONDS = 5.0


async def run_while_connected(request: Request, work: Coroutine[object, object, T]) -> T:
    """Result of `work`. It is cancelled if the client disconnects (Ctrl-C in the terminal)."""
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
        pass  # the rest of a body that was already read


router = ApiRouter("tools")


@router.get("/tools/list", response_model=ToolList, **document("All tools"))
async def list_tools(hub: TheHub, caller: Caller) -> Response:
    """The tools this caller may use: all for the owner, those its policy allows for an agent."""
    await hub.base.lifecycle.wait_ready()
    tools = hub.tool_access.tools_for(caller)
    return _json(tools.model_dump_json(), tools.version)


@router.post("/tools/call", response_model=ToolResult, **document("Call a tool", 404, 409, 502, 504, body=ToolCall))
async def call_tool(request: Request) -> Response:
    """Arguments are checked against the tool's schema before any server is touched. A tool that ran and failed
    answers 200 with `is_error`. Nothing a caller sends can stand for an approval."""
    hub: HubContext = request.app.state.hub
    caller: CallerIdentity = request.state.identity
    call = await read_body(request, ToolCall)
    calling = call_guarded(hub, caller, call, request.headers.get(CLIENT_HEADER))
    # A disconnected agent asks again for its call id; a person who disconnects does not want the result.
    result = await (calling if caller.kind == "agent" else run_while_connected(request, calling))
    # Every answer carries the version of the list, so that an agent notices changes (RTR-06).
    return _json(result.model_dump_json(), hub.tool_access.tools_for(caller).version)


async def call_guarded(
    hub: HubContext, caller: CallerIdentity, call: ToolCall, client: str | None = None
) -> ToolResult:
    """Make a call of this caller, with every check."""
    await hub.base.lifecycle.wait_ready()
    access = hub.tool_access
    context = await access.make_context(caller, call, client)
    policy = access.authorize(caller, context, call)
    if caller.outside_agent is not None and context.agent_id is not None:
        hub.agents.check_paused(context.agent_id)  # what was stopped is stopped for all agents
    if hub.toolbox.wants_provenance(call.name):
        context = await label_provenance(
            hub.storage.database, context, access.find_tool(caller, call.name), call.arguments
        )
    hub.storage.traces.write(
        "tool.called", {"tool": call.name, "call_id": call.call_id, "caller": caller.outside_agent or caller.kind}
    )
    try:
        result = await hub.toolbox.call(call.name, call.arguments, context, policy)
    except (AnnabelleError, asyncio.CancelledError) as error:
        code = error.code if isinstance(error, AnnabelleError) else TurnCancelled.code
        hub.storage.traces.write("tool.failed", {"tool": call.name, "call_id": call.call_id, "code": code})
        raise
    await note_foreign_content(hub.storage.database, context, call.name, result)
    hub.storage.traces.write(
        "tool.finished",
        {"tool": call.name, "call_id": call.call_id, "is_error": result.is_error, "duration_ms": result.duration_ms},
    )
    return result


def _json(text: str, tools_version: str) -> Response:
    return Response(text, headers={TOOLS_VERSION_HEADER: tools_version}, media_type="application/json")
