"""An MCP server whose list of tools may change: tells clients of both protocol eras."""

from __future__ import annotations

import logging
from weakref import WeakSet

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from annabelle.core.tools import JsonObject

_log = logging.getLogger(__name__)
McpContext = ServerRequestContext[JsonObject, object]


class ChangingServer(Server[JsonObject]):
    """Its handlers are added with `add_request_handler`; the one that lists tools calls `note_client`."""

    def __init__(self, name: str, *, version: str, instructions: str | None) -> None:
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        # Clients of the older era, which are told unasked.
        self._clients: WeakSet[Connection] = WeakSet()
        super().__init__(name, version=version, instructions=instructions, on_subscriptions_listen=self._listening)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, JsonObject] | None = None,
        extensions: dict[str, JsonObject] | None = None,
    ) -> InitializationOptions:
        # The SDK calls it without options for the sessions it opens itself.
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def note_client(self, context: McpContext) -> None:
        """Tell the client of this request when the list changes."""
        # The SDK has no public way from a request to the connection it came by.
        self._clients.add(context.session._connection)  # pyright: ignore[reportPrivateUsage]

    async def announce_change(self) -> None:
        await self._bus.publish(ToolsListChanged())
        for client in list(self._clients):
            try:
                await client.send_tool_list_changed()
            except Exception as error:  # noqa: BLE001  one client that is gone must not keep it from the others
                _log.debug("A client was not told that the tools changed: %s", error)

    def end_streams(self) -> None:
        self._listening.close()
