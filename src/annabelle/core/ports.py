"""What lower rooms need from whoever stands above them."""

from __future__ import annotations

from typing import Protocol

from annabelle.core.contract import ModelCall, Reservation, Reserve
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec


class Ledger(Protocol):
    """The one book of model costs: reserved before a call, settled after (CST-09)."""

    async def reserve(self, request: Reserve) -> Reservation: ...

    async def settle(self, call: ModelCall) -> None: ...


class ToolClient(Protocol):
    """One tool-serving party. Servers, native tools and every wrapper around them have this shape."""

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult: ...
