"""Lets a call through only if the caller's policy permits it and, where needed, the person approved it (POL-01 to
POL-03).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from annabelle.core.errors import NotAllowed
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import PolicyDecision
from annabelle.toolbox.call_hooks import CallHooks, YesNeeded
from annabelle.toolbox.catalogue import AgentPolicy, may_use


@dataclass(frozen=True, slots=True)
class RequirePermission:
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
        if tool.audience == "named" and context.caller == "agent" and tool.name not in (context.allowed_tools or ()):
            raise NotAllowed(f"{tool.name} is for agents of goals.")
        if self.policy is not None and not self.policy.permits(tool.name):
            raise NotAllowed(
                f"{context.agent_id or 'This agent'} may not use {tool.name}.",
                hint="allowedTools and deniedTools in agents.json decide this.",
            )
        return await self.inner.call(tool, arguments, context)


@dataclass(frozen=True, slots=True)
class RequireApproval:
    """Asks the judge, and the person where the judge says so. People's own calls need no approval, nor do internal
    lookups of an agent's process, which have no call id.

    `was_started` tells whether a call id was let through before: a repeat after a crash gets the outcome of that call,
    whatever policy says now.
    """

    inner: ToolClient
    hooks: CallHooks
    was_started: Callable[[str], Awaitable[bool]]

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        judge, approvals, call_id = self.hooks.judge, self.hooks.approvals, context.call_id
        if judge is None or context.caller != "agent" or context.judged:
            return await self.inner.call(tool, arguments, context)
        if call_id is None:
            if not tool.annotations.read_only:
                raise NotAllowed(f"{tool.name} does something, so an agent calls it with a call_id.", field="call_id")
            return await self.inner.call(tool, arguments, context)
        decision = await judge.judge(tool, arguments, context)
        context = context.model_copy(update={"labels": decision.labels, "judged": True})
        if decision.verdict == "allow" or await self.was_started(call_id):
            return await self.inner.call(tool, arguments, context)
        why = " ".join(decision.reasons)
        if decision.verdict == "refuse":
            self._note("refused", tool, context, decision)
            raise NotAllowed(
                f"This was not done. {why}", hint=f"{tool.name} was not called; only the user can change the rule."
            )
        if approvals is not None and await approvals.granted(tool, arguments, context):
            return await self.inner.call(tool, arguments, context)
        if approvals is None or not context.askable:
            self._note("not_askable", tool, context, decision)
            raise YesNeeded(
                f"This needs a yes, and nobody can be asked here. {why}",
                hint=f"{tool.name} was not called. Report what should be done; whoever talks with the user can ask."
                if context.message_id is not None
                else "Say it to Annabelle in a message, and the user is asked.",
            )
        return await approvals.ask(tool, arguments, context, decision)

    def _note(self, event: str, tool: ToolSpec, context: CallContext, decision: PolicyDecision) -> None:
        if self.hooks.audit is not None:
            facts: JsonObject = {
                "event": event,
                "tool": tool.name,
                "agent_id": context.agent_id,
                "user_id": context.user_id,
                "call_id": context.call_id,
                "classes": list(decision.classes),
            }
            self.hooks.audit.note("approval", facts, context.trace_id)
