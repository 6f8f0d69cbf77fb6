"""What the test servers share: a low-level server made of plain functions, run over stdio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

Context = ServerRequestContext[dict[str, object], object]
Arguments = dict[str, object]
Act = Callable[[Arguments, Context], Awaitable[object]]


@dataclass
class Prop:
    """One tool of a test server."""

    name: str
    act: Act
    properties: dict[str, object] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    read_only: bool = False
    idempotent: bool = False

    def listed(self) -> types.Tool:
        return types.Tool(
            name=self.name,
            description=f"Test tool {self.name}.",
            input_schema={
                "type": "object",
                "properties": self.properties,
                "required": list(self.required),
                "additionalProperties": False,
            },
            annotations=types.ToolAnnotations(
                read_only_hint=self.read_only, destructive_hint=False, idempotent_hint=self.idempotent
            ),
        )


class Stage:
    """A server whose list of tools may change while it runs."""

    def __init__(self, name: str, props: list[Prop]) -> None:
        self.props = {prop.name: prop for prop in props}
        self.bus = InMemorySubscriptionBus()
        self.server = Server[dict[str, object]](
            name,
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self.bus),
        )

    async def announce(self, context: Context) -> None:
        """Tell the client that the list of tools is another one now, in the way its protocol revision has for it."""
        await self.bus.publish(ToolsListChanged())
        if context.protocol_version < "2026":
            await context.session.send_tool_list_changed()

    async def _list(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[prop.listed() for prop in self.props.values()])

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        said = await self.props[params.name].act(dict(params.arguments or {}), context)
        if isinstance(said, types.CallToolResult):
            return said
        structured = said if isinstance(said, dict) else None
        return types.CallToolResult(content=[types.TextContent(text=str(said))], structured_content=structured)

    def run(self) -> None:
        asyncio.run(self.serve())

    async def serve(self) -> None:
        options = self.server.create_initialization_options(NotificationOptions(tools_changed=True))
        async with stdio_server() as (read, write):
            await self.server.run(read, write, options)
