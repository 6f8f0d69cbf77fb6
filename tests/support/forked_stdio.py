"""A forked program that speaks MCP on its standard streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from io import TextIOWrapper
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from support.timing import seconds
from support.warm_process import TEMPLATE


@asynccontextmanager
async def forked_stdio(program: str, environment: dict[str, str], arguments: Sequence[str] = ()) -> AsyncGenerator[Any]:
    """The streams that an official client speaks through."""
    process, into, out = TEMPLATE.fork_with_pipes(program, environment, arguments)
    # What a server does with its own streams, a client does with the other ends of them.
    with TextIOWrapper(out, encoding="utf-8") as from_server, TextIOWrapper(into, encoding="utf-8") as to_server:
        async with stdio_server(anyio.wrap_file(from_server), anyio.wrap_file(to_server)) as streams:
            try:
                yield streams
            finally:
                to_server.close()
    await asyncio.to_thread(process.wait, seconds(30))
