"""Runs one short session through the servers' kit before the first fork. Importing this module runs it; the fork server
does so by name.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Protocol, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import BaseModel, Field

_SECONDS = 10
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "warmup", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_SCRIPT: tuple[tuple[str, dict[str, object]], ...] = (
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "say", "arguments": {"text": "it"}}),
    ("tools/call", {"name": "readiness", "arguments": {}}),
)


class _WarmupAnswer(BaseModel):
    text: str


class _WarmupProtocol(Protocol):
    async def serve(self, read_stream: object, write_stream: object) -> None: ...


class _WarmupServer(Protocol):
    protocol: _WarmupProtocol


class _ServerKit(Protocol):
    def ToolServer(
        self, name: str, tools: list[object], *, readiness: Callable[[], Awaitable[str | None]]
    ) -> _WarmupServer: ...


async def say(text: Annotated[str, Field(description="What to say")]) -> _WarmupAnswer:
    """Say it."""
    return _WarmupAnswer(text=text)


async def _nothing_missing() -> str | None:
    return None


async def _run_script(server: _WarmupServer) -> None:
    to_server, at_server = anyio.create_memory_object_stream[SessionMessage](4)
    from_server, at_client = anyio.create_memory_object_stream[SessionMessage](4)
    async with to_server, at_client:
        serving = asyncio.ensure_future(server.protocol.serve(at_server, from_server))
        for number, (method, params) in enumerate(_SCRIPT, start=1):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": _META}}
            await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_json(json.dumps(request))))
            (await at_client.receive()).message.model_dump_json(by_alias=True, exclude_unset=True)
        await to_server.aclose()
        await serving


def warm_up() -> None:
    module = importlib.import_module("annabelle.servers.kit")
    marked: object = module.tool(read_only=True, destructive=False, idempotent=True, open_world=False)(say)
    server = cast("_ServerKit", module).ToolServer("warmup", [marked], readiness=_nothing_missing)
    asyncio.run(asyncio.wait_for(_run_script(server), _SECONDS))


warm_up()
