"""Adapts the SDK's HTTP client. Imported by name, only when a server is reached by URL."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Protocol, cast

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client  # the only public maker of the client the SDK wants
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from annabelle import __version__
from annabelle.core.tools import JsonObject
from annabelle.toolbox.mcp.connection import ServerIntroduction
from annabelle.toolbox.mcp.rpc import ConnectionLost, RpcError

_INTERNAL = -32603
_MAX_PAGES = 100
_GONE = types.CONNECTION_CLOSED


class SdkHttpSession:
    """Lists and calls tools; errors of the SDK become ours."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.protocol: str | None = client.protocol_version

    async def introduce(self) -> ServerIntroduction:
        session, can, who = self._client.session, self._client.server_capabilities, self._client.server_info
        prompts: list[JsonObject] = []
        resources: list[JsonObject] = []
        with _translate_errors(sent=False):
            if can.prompts is not None:
                prompts = await _list_optional(session.list_prompts, "prompts")
            if can.resources is not None:
                resources = await _list_optional(session.list_resources, "resources")
                resources += await _list_optional(session.list_resource_templates, "resourceTemplates")
        name, version = ("", "") if who is None else (who.name, who.version)
        return ServerIntroduction(name, version, self._client.instructions or "", tuple(prompts), tuple(resources))

    async def list_tools(self) -> list[JsonObject]:
        with _translate_errors(sent=False):
            return await _list_pages(self._client.session.list_tools, "tools")

    async def call_tool(self, name: str, arguments: JsonObject, meta: JsonObject) -> JsonObject:
        with _translate_errors(sent=True):
            result = await self._client.session.call_tool(
                name, arguments, meta=cast("types.RequestParamsMeta", meta), allow_input_required=True
            )
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def ping(self) -> None:
        with _translate_errors(sent=False):
            if self.protocol in MODERN_PROTOCOL_VERSIONS:
                await self._client.session.send_discover(self.protocol)
            else:
                await self._client.session.send_ping()


class _ListRequest(Protocol):
    """One of the SDK's listing requests."""

    async def __call__(self, *, params: types.PaginatedRequestParams | None) -> types.PaginatedResult: ...


async def _list_optional(ask: _ListRequest, what: str) -> list[JsonObject]:
    """List what is only compared; a server that cannot list it has none."""
    try:
        return await _list_pages(ask, what)
    except MCPError as error:
        if error.code == _GONE:
            raise
        return []


async def _list_pages(ask: _ListRequest, what: str) -> list[JsonObject]:
    found: list[JsonObject] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
        found += cast("list[JsonObject]", page.model_dump(by_alias=True, mode="json", exclude_none=True)[what])
        cursor = page.next_cursor
        if not cursor:
            break
    return found


@contextlib.contextmanager
def _translate_errors(*, sent: bool) -> Generator[None]:
    try:
        yield
    except MCPError as error:
        if error.code == _GONE:
            raise ConnectionLost(str(error), sent=sent) from error
        raise RpcError(error.code, error.error.message, error.error.data) from error
    except (httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError) as error:
        raise ConnectionLost(f"the connection broke: {error or type(error).__name__}", sent=sent) from error
    except (RuntimeError, ValueError) as error:
        raise RpcError(_INTERNAL, str(error)) from error


@contextlib.asynccontextmanager
async def open_session(
    url: str, headers: dict[str, str], on_tools_changed: Callable[[], None]
) -> AsyncGenerator[SdkHttpSession]:
    """A session with the server at this URL, of any supported protocol revision."""

    async def on_message(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_tools_changed()

    async with create_mcp_http_client(headers) as http:
        client = Client(
            streamable_http_client(url, http_client=http),
            cache=None,
            message_handler=on_message,
            client_info=types.Implementation(name="annabelle", version=__version__),
        )
        async with client:
            listening = asyncio.create_task(_listen(client, on_tools_changed))
            try:
                yield SdkHttpSession(client)
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)


async def _listen(client: Client, on_tools_changed: Callable[[], None]) -> None:
    """Subscribe to changes: modern servers send them only to subscribers."""
    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
        return
    async with client.listen(tools_list_changed=True) as subscription:
        async for _ in subscription:
            on_tools_changed()
