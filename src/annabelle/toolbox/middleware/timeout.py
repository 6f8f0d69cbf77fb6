"""Cancels a call at the server when its time is over, and measures how long it took (RTR-04)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from annabelle.core.errors import ToolTimeout
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec


@dataclass(frozen=True, slots=True)
class LimitTime:
    inner: ToolClient
    seconds: float

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.seconds):
                result = await self.inner.call(tool, arguments, context)
        except TimeoutError as error:
            hint = "What it did before that is not known; look before you repeat it."
            raise ToolTimeout(
                f"{tool.name} did not answer within {self.seconds:g} seconds and was cancelled.",
                hint=None if tool.annotations.repeatable else hint,
            ) from error
        return result.model_copy(update={"duration_ms": round((time.perf_counter() - started) * 1000, 3)})
