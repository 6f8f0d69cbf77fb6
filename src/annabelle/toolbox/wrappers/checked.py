"""Refuses arguments that do not fit the tool's schema, before anything else happens (RTR-03)."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.validation import ArgumentChecker


@dataclass(frozen=True, slots=True)
class Checked:
    inner: ToolClient
    checker: ArgumentChecker

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.checker.check(tool, arguments)
        return await self.inner.call(tool, arguments, context)
