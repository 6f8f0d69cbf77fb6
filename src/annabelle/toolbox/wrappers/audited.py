"""Notes every call and how it ended, whoever made it and wherever on its way it was turned back (TRU-08)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from annabelle.core.errors import AnnabelleError
from annabelle.core.ports import Audit, ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.journal import arguments_hash


@dataclass(frozen=True, slots=True)
class Audited:
    """The outermost door: it sees what the caller sees."""

    inner: ToolClient
    audit: Audit | None

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if self.audit is None:
            return await self.inner.call(tool, arguments, context)
        started, outcome = time.perf_counter(), "failed"
        try:
            result = await self.inner.call(tool, arguments, context)
            outcome = _outcome(result)
        except AnnabelleError as error:
            outcome = error.code
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            facts: JsonObject = {
                "server": tool.server,
                "tool": tool.name,
                "caller": context.caller,
                "agent_id": context.agent_id,
                "user_id": context.user_id,
                "call_id": context.call_id,
                "outcome": outcome,
                "ms": round((time.perf_counter() - started) * 1000, 1),
                "arguments_hash": arguments_hash(tool.name, arguments),
            }
            self.audit.note("tool", facts, context.trace_id)
        return result


def _outcome(result: ToolResult) -> str:
    if result.approval_id is not None:
        return "waits"
    if result.is_error:
        return result.error.code if result.error is not None else "tool_failed"
    return "replayed" if result.replayed else "ok"
