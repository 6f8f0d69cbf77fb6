"""What the SDK's connection loop asks of a server, and no more.

The SDK's own `Server` class answers the same questions, but its module is also its HTTP application and brings a web
framework along. A test holds the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.server.runner import serve_dual_era_loop
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

Context = ServerRequestContext[dict[str, object], object]


@dataclass(frozen=True, slots=True)
class Entry:
    """A method's handler, and the model its parameters are parsed into before it is called."""

    params_type: type[types.RequestParams]
    handler: object


class Registry:
    """A server's name and methods, for clients of both protocol eras."""

    def __init__(self, name: str, version: str, instructions: str | None, methods: dict[str, Entry]) -> None:
        self._name, self._version, self._instructions = name, version, instructions
        self._methods = {
            "ping": Entry(types.RequestParams, self._ping),
            "server/discover": Entry(types.RequestParams, self._discover),
            **methods,
        }
        self.middleware: list[object] = []
        self.cache_hints: dict[str, object] = {}

    @property
    def capabilities(self) -> types.ServerCapabilities:
        """Tools, if there are any. The list does not change while a built-in server runs."""
        tools = types.ToolsCapability(list_changed=False) if "tools/list" in self._methods else None
        return types.ServerCapabilities(tools=tools)

    @property
    def server_info_stamp(self) -> dict[str, object]:
        """A fresh dictionary each time: the loop writes it into results."""
        return {"name": self._name, "version": self._version}

    def get_request_handler(self, method: str) -> Entry | None:
        return self._methods.get(method)

    def get_notification_handler(self, method: str) -> None:
        return None

    def create_initialization_options(self) -> InitializationOptions:
        return InitializationOptions(
            server_name=self._name,
            server_version=self._version,
            capabilities=self.capabilities,
            instructions=self._instructions,
        )

    async def serve(
        self, read_stream: ReadStream[SessionMessage | Exception], write_stream: WriteStream[SessionMessage]
    ) -> None:
        """Answer one client until it hangs up, in the protocol era it opens with."""
        server = cast("Server[dict[str, object]]", self)
        options = self.create_initialization_options()
        await serve_dual_era_loop(server, read_stream, write_stream, lifespan_state={}, init_options=options)

    async def _ping(self, context: Context, params: types.RequestParams) -> types.EmptyResult:
        return types.EmptyResult()

    async def _discover(self, context: Context, params: types.RequestParams) -> types.DiscoverResult:
        return types.DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=self.capabilities,
            instructions=self._instructions,
        )
