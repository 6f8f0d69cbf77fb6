"""Speaks to every built-in server with a client other people wrote. Runs in their environment, so it imports no test.

Takes a JSON list of `{name, command, args, env, pipes, tool, arguments, meta}` on standard input; prints a line for
each. A server that runs already is given by the two pipes it is read and written through, another by its command.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import ClientTransport, StdioTransport
from mcp import ClientSession
from mcp.server.stdio import stdio_server


class PipeTransport(ClientTransport):
    """As `StdioTransport`, without the start of a process."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing

    @asynccontextmanager
    async def connect_session(self, *, transport_options: Any = None, **session: Any) -> AsyncGenerator[ClientSession]:
        # What a server does with its own streams, a client does with the other ends of them.
        with os.fdopen(self._reading, encoding="utf-8") as come, os.fdopen(self._writing, "w", encoding="utf-8") as go:
            async with stdio_server(anyio.wrap_file(come), anyio.wrap_file(go)) as streams:
                async with ClientSession(*streams, **session) as made:
                    yield made
                go.close()


async def speak(server: dict[str, Any]) -> dict[str, Any]:
    """List the tools, and call one of them."""
    started = time.perf_counter()
    if server["pipes"]:
        transport = PipeTransport(*server["pipes"])
    else:
        transport = StdioTransport(server["command"], server["args"], env=server["env"], keep_alive=False)
    async with Client(transport, timeout=30) as client:
        tools = await client.list_tools()
        listed = time.perf_counter()
        answer = await client.call_tool(server["tool"], server["arguments"], meta=server["meta"], raise_on_error=False)
        called = time.perf_counter()
    return {
        "name": server["name"],
        "tools": sorted(tool.name for tool in tools),
        "is_error": answer.is_error,
        "structured": answer.structured_content,
        "list_ms": round((listed - started) * 1000, 1),
        "call_ms": round((called - listed) * 1000, 1),
    }


async def main() -> None:
    for server in json.load(sys.stdin):
        sys.stdout.write(json.dumps(await speak(server)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
