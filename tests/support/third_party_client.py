"""Speaks to every built-in server with a client other people wrote. Runs in their environment, so it imports no test.

Takes a JSON list of `{name, command, args, env, tool, arguments, meta}` on standard input; prints a line for each.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def speak(server: dict[str, Any]) -> dict[str, Any]:
    """List the tools, and call one of them."""
    started = time.perf_counter()
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
