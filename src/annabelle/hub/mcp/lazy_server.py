"""The MCP server is imported and started with the first request: a quarter of a hub's imports are for it alone."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from annabelle.core.errors import Unavailable
from annabelle.hub.context import HubContext

if TYPE_CHECKING:
    from annabelle.hub.mcp.server import HubMcpServer


class LazyMcpServer:
    """What answers at /mcp."""

    def __init__(self, hub: HubContext) -> None:
        self._hub = hub
        self._server: HubMcpServer | None = None
        self._starting = asyncio.Lock()
        self._stopping = False

    async def stop(self) -> None:
        self._stopping = True
        async with self._starting:
            if self._server is not None:
                await self._server.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = self._server or await self._start()
        await server(scope, receive, send)

    async def _start(self) -> HubMcpServer:
        async with self._starting:
            if self._stopping:
                raise Unavailable("Annabelle is shutting down.", hint="Connect again once it is back.")
            if self._server is None:
                module = await asyncio.to_thread(importlib.import_module, "annabelle.hub.mcp.server")
                server: HubMcpServer = module.HubMcpServer(self._hub)
                await server.start()
                self._server = server
            return self._server
