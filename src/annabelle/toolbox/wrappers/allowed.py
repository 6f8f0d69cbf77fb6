"""Lets a call through only if the caller's policy permits the tool (POL-01)."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.errors import NotAllowed
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.policy import AgentPolicy


@dataclass(frozen=True, slots=True)
class Allowed:
    """An agent without a policy may call nothing: a forgotten policy must not read as permission."""

    inner: ToolClient
    policy: AgentPolicy | None

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if self.policy is None and context.caller == "agent":
            raise NotAllowed(f"{tool.name} was called by an agent without a policy.")
        if self.policy is not None and not self.policy.permits(tool.name):
            raise NotAllowed(
                f"{context.agent_id or 'This agent'} may not use {tool.name}.",
                hint="allowedTools and deniedTools in agents.json decide this.",
            )
        return await self.inner.call(tool, arguments, context)
