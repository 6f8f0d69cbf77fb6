"""Tools that a thinker serves itself, about what only it has: its archive and its workspace."""

from __future__ import annotations

from typing import Final, Protocol

from annabelle.core.tools import JsonObject, ToolResult, ToolSpec

LOCAL_SERVER: Final = "thinker"


class LocalTool(Protocol):
    """One tool of one turn."""

    @property
    def spec(self) -> ToolSpec: ...

    async def call(self, arguments: JsonObject) -> ToolResult: ...
