"""`annabelle mcp`: an MCP server on standard input and output that passes everything on to the hub (API-07)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import httpx2 as httpx
import mcp_types as types
import typer
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION

from annabelle import __version__
from annabelle.cli.hub_client import HubAddress, find_hub, not_running
from annabelle.cli.hub_process import temporary_hub
from annabelle.cli.options import command_app
from annabelle.core.errors import AnnabelleError, OperatorMistake, Unauthorized, explain_os_error
from annabelle.core.home import Home
from annabelle.core.network_access import trust_store
from annabelle.toolbox.mcp.changing_server import ChangingServer, McpContext

CALL_SECONDS = 600.0
LISTEN_AGAIN_SECONDS = 1.0

app = command_app()


@app.command()
def mcp(
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="Use the token in this file instead of the owner's.")
    ] = None,
) -> None:
    """Be an MCP server on standard input and output, for Claude Desktop, editors and other agents.

    Starts Annabelle for as long as it is used when it does not run. Whoever uses it is judged as an agent.
    """
    home = Home.from_environment()
    with temporary_hub(home):
        asyncio.run(_serve(_address(home, token_file)))


def _address(home: Home, token_file: Path | None) -> HubAddress:
    found = find_hub(home)
    if token_file is None:
        return found
    with explain_os_error(OperatorMistake, f"The token file {token_file} can not be read"):
        # What is no text is no token either, and the hub says so.
        token = token_file.read_text(encoding="ascii", errors="replace").strip()
        return HubAddress(found.url, token.encode("ascii", "replace").decode())


async def _serve(address: HubAddress) -> None:
    async with _connect(address) as hub, stdio_server() as (read, write):
        bridge = McpBridge(hub)
        listening = asyncio.create_task(bridge.pass_on_changes())
        try:
            await bridge.server.run(read, write, bridge.server.create_initialization_options())
        finally:
            listening.cancel()


@asynccontextmanager
async def _connect(address: HubAddress) -> AsyncGenerator[Client]:
    async with httpx.AsyncClient(
        headers={"Authorization": f"Bearer {address.token}"},
        # A transport of its own also means that no proxy is used for loopback.
        transport=_HubTransport(verify=trust_store(address.url)),
        timeout=httpx.Timeout(CALL_SECONDS, connect=5.0),
    ) as http:
        transport = streamable_http_client(f"{address.url}/mcp", http_client=http)
        # In this version a request needs no session, so the hub may be restarted meanwhile.
        async with Client(transport, mode=LATEST_MODERN_VERSION, cache=None) as hub:
            yield hub


class _HubTransport(httpx.AsyncHTTPTransport):
    """Answers for a hub that is away, because a failed connection would end the SDK's client for good."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            reply = await super().handle_async_request(request)
        except httpx.TransportError:
            return _refuse(503, not_running())
        if reply.status_code == HTTPStatus.UNAUTHORIZED:
            await reply.aclose()
            hint = "Make one with: annabelle tokens add NAME --kind agent"
            return _refuse(reply.status_code, Unauthorized("Annabelle does not know this token.", hint=hint))
        return reply


def _refuse(status: int, why: AnnabelleError) -> httpx.Response:
    """In the words of the protocol, since the SDK's client drops any others."""
    error = {"code": types.INTERNAL_ERROR, "message": f"{why.message} {why.hint}"}
    return httpx.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error})


class McpBridge:
    """Answers each request with what the hub answers to it."""

    def __init__(self, hub: Client) -> None:
        self._hub = hub
        self.server = server = ChangingServer("annabelle", version=__version__, instructions=hub.instructions)
        server.add_request_handler("tools/list", types.PaginatedRequestParams, self._list_tools)
        server.add_request_handler("tools/call", types.CallToolRequestParams, self._call_tool)
        server.add_request_handler("resources/list", types.PaginatedRequestParams, self._list_resources)
        server.add_request_handler("resources/read", types.ReadResourceRequestParams, self._read_resource)

    async def pass_on_changes(self) -> None:
        """Tell the client when the tools change, also after the hub was away."""
        while True:
            try:
                async with self._hub.listen(tools_list_changed=True) as changes:
                    async for _change in changes:
                        await self.server.announce_change()
            except (MCPError, SubscriptionLost, TimeoutError):
                pass  # it is stopping, or away; what changes meanwhile is listed afterwards
            await asyncio.sleep(LISTEN_AGAIN_SECONDS)

    async def _list_tools(self, context: McpContext, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        self.server.note_client(context)
        return await self._hub.list_tools(cursor=params.cursor)

    async def _call_tool(self, _context: McpContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await self._hub.call_tool(params.name, params.arguments)

    async def _list_resources(
        self, _context: McpContext, params: types.PaginatedRequestParams
    ) -> types.ListResourcesResult:
        return await self._hub.list_resources(cursor=params.cursor)

    async def _read_resource(
        self, _context: McpContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await self._hub.read_resource(str(params.uri))
