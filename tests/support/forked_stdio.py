"""A forked program that speaks MCP on its standard streams."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from support.timing import seconds
from support.warm_process import TEMPLATE


@asynccontextmanager
async def forked_stdio(program: str, environment: dict[str, str], arguments: Sequence[str] = ()) -> AsyncGenerator[Any]:
    """The streams that an official client speaks through."""
    (child_in, ours_in), (ours_out, child_out) = os.pipe(), os.pipe()
    process = TEMPLATE.fork(program, environment, [child_in, child_out, sys.__stderr__.fileno()], arguments)
    os.close(child_in)
    os.close(child_out)
    # What a server does with its own streams, a client does with the other ends of them.
    with os.fdopen(ours_out, encoding="utf-8") as from_server, os.fdopen(ours_in, "w", encoding="utf-8") as to_server:
        async with stdio_server(anyio.wrap_file(from_server), anyio.wrap_file(to_server)) as streams:
            try:
                yield streams
            finally:
                to_server.close()
    await asyncio.to_thread(process.wait, seconds(30))
