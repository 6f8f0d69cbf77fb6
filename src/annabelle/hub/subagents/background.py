"""Makes one tool call in the background, under the policy and for the person it was asked for (RTR-05)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, cast

from annabelle.core.errors import AnnabelleError, TurnCancelled
from annabelle.core.messages import OWNER
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.provenance import labelled
from annabelle.hub.security.people import People, refusal
from annabelle.store.database import Database
from annabelle.store.tasks import Task
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.policy import AgentPolicy

_MOST_STOPS: Final = 10


@dataclass(frozen=True, slots=True)
class BackgroundParts:
    """What a call needs."""

    database: Database
    toolbox: Toolbox
    agents: AgentManager
    people: People
    ready: Callable[[], Awaitable[None]]


class BackgroundCalls:
    """Goes through the same doors as every other call, by the rules in force when it is made."""

    def __init__(self, parts: BackgroundParts) -> None:
        self._parts = parts

    def policy(self, context: CallContext) -> AgentPolicy | None:
        return self._parts.agents.policy_of(context)

    async def run(self, task: Task) -> ToolResult:
        """The call has an id, so one that a crash interrupted is not made twice: its outcome may be unknown then."""
        context = CallContext.model_validate(task.request["context"])
        context = context.model_copy(update={"queued_as": task.request.get("queued_as")})
        await self._parts.ready()
        for attempt in range(_MOST_STOPS):
            try:
                if context.caller == "agent":
                    self._parts.agents.check_paused(context.agent_id or "")
                return await self._call(task, context.model_copy(update={"call_id": f"{task.id}:{attempt}"}))
            except TurnCancelled:
                # A hub that stopped politely cancelled it, which is only said of calls that can be made again.
                continue
            except AnnabelleError as error:
                return ToolResult.failure(error.body(context.trace_id)).model_copy(update={"trust": "trusted"})
        stopped = TurnCancelled("It was stopped again and again before it was done.")
        return ToolResult.failure(stopped.body(context.trace_id)).model_copy(update={"trust": "trusted"})

    async def _call(self, task: Task, context: CallContext) -> ToolResult:
        parts = self._parts
        name, arguments = str(task.request["tool"]), cast("JsonObject", task.request["arguments"])
        there = parts.toolbox.tools().tools
        if context.user_id != OWNER:
            theirs = parts.people.policy(context.user_id, there, in_turn=context.caller == "agent")
            if not theirs.permits(name):
                raise refusal(context.user_id, name)
        if parts.toolbox.wants_provenance(name):
            spec = next((one for one in there if one.name == name), None)
            context = await labelled(parts.database, context, spec, arguments)
        return await parts.toolbox.call(name, arguments, context, self.policy(context))
