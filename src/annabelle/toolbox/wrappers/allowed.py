"""Lets a call through only if the tool is meant for the caller and its policy permits it (POL-01)."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.errors import NotAllowed
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.audience import may_use
from annabelle.toolbox.policy import AgentPolicy


@dataclass(frozen=True, slots=True)
class Allowed:
    """An agent without a policy may call nothing: a forgotten policy must not read as permission."""

    inner: ToolClient
    policy: AgentPolicy | None

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if self.policy is None and context.caller == "agent":
            raise NotAllowed(f"{tool.name} was called by an agent without a policy.")
        if not may_use(context.caller, tool):
            raise NotAllowed(
                f"{tool.name} is not for {'agents' if context.caller == 'agent' else 'requests from outside'}.",
                hint="A person can use it." if tool.audience == "people" else None,
            )
        if self.policy is not None and not self.policy.permits(tool.name):
            raise NotAllowed(
                f"{context.agent_id or 'This agent'} may not use {tool.name}.",
                hint="allowedTools and deniedTools in agents.json decide this.",
            )
        return await self.inner.call(tool, arguments, context)
