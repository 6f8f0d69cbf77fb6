"""Runs one tiny conversation through the server library, so that what it builds on first use is built before the fork.

Importing this module is the rehearsal. Only the nursery does, by name; nothing else may import the server library.
"""

from __future__ import annotations

import asyncio

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

Context = ServerRequestContext[dict[str, object], object]

_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "rehearsal", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_SCRIPT = ("server/discover", "tools/list", "tools/call")


async def _list(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    schema: dict[str, object] = {"type": "object"}
    tool = types.Tool(name="say", description="Say it.", input_schema=schema, annotations=types.ToolAnnotations())
    return types.ListToolsResult(tools=[tool])


async def _call(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text="it")], structured_content={"it": 1})


async def _rehearse() -> None:
    server = Server[dict[str, object]]("rehearsal", on_list_tools=_list, on_call_tool=_call)
    async with create_client_server_memory_streams() as (ours, theirs):
        serving = asyncio.ensure_future(server.run(*theirs, server.create_initialization_options()))
        read, write = ours
        for number, method in enumerate(_SCRIPT, start=1):
            params: dict[str, object] = {"_meta": _META}
            if method == "tools/call":
                params |= {"name": "say", "arguments": {"what": "it"}}
            line = types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params).model_dump_json()
            await write.send(SessionMessage(types.jsonrpc_message_adapter.validate_json(line)))
            answer = await read.receive()
            if isinstance(answer, SessionMessage):
                answer.message.model_dump_json(by_alias=True, exclude_unset=True)
        await write.aclose()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


asyncio.run(asyncio.wait_for(_rehearse(), timeout=10))
