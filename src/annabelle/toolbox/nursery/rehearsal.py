"""Runs one tiny conversation through the servers' kit, so that what it builds on first use is built before the fork.

Importing this module is the rehearsal. Only the nursery does, by name, and it finds the kit by name too: nothing
outside the servers' own room may import them.
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
    "io.modelcontextprotocol/clientInfo": {"name": "rehearsal", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_SCRIPT: tuple[tuple[str, dict[str, object]], ...] = (
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "say", "arguments": {"text": "it"}}),
    ("tools/call", {"name": "readiness", "arguments": {}}),
)


class _Said(BaseModel):
    text: str


class _Protocol(Protocol):
    async def serve(self, read_stream: object, write_stream: object) -> None: ...


class _Server(Protocol):
    protocol: _Protocol


class _Kit(Protocol):
    def ToolServer(
        self, name: str, tools: list[object], *, readiness: Callable[[], Awaitable[str | None]]
    ) -> _Server: ...


async def say(text: Annotated[str, Field(description="What to say")]) -> _Said:
    """Say it."""
    return _Said(text=text)


async def _nothing_missing() -> str | None:
    return None


async def _rehearse(server: _Server) -> None:
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


def rehearse() -> None:
    module = importlib.import_module("annabelle.servers.kit")
    marked: object = module.tool(read_only=True, destructive=False, idempotent=True, open_world=False)(say)
    server = cast("_Kit", module).ToolServer("rehearsal", [marked], readiness=_nothing_missing)
    asyncio.run(asyncio.wait_for(_rehearse(server), _SECONDS))
    module.own_settings()  # the environment is empty here; what it takes to read one is made once for all


rehearse()
