"""Makes one tool call in the background, under the policy and for the person it was asked for (RTR-05)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, cast

from annabelle.core.errors import AnnabelleError, NotAllowed, TurnCancelled
from annabelle.core.messages import OWNER
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.queued import call_id_of
from annabelle.hub.provenance import labelled
from annabelle.hub.security.people import People, refusal
from annabelle.store import approvals
from annabelle.store.approvals import Approval
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
        queued_as = task.request.get("queued_as")
        context = context.model_copy(update={"queued_as": queued_as, "askable": queued_as is not None})
        asked = await self._parts.database.read(lambda conn: approvals.of_root(conn, task.id))
        await self._parts.ready()
        for attempt in range(_MOST_STOPS):
            try:
                if context.caller == "agent":
                    self._parts.agents.check_paused(context.agent_id or "")
                made_as = context.model_copy(update={"call_id": call_id_of(task.id, attempt)})
                return await self._call(task, made_as, asked[-1] if asked else None)
            except TurnCancelled:
                # A hub that stopped politely cancelled it, which is only said of calls that can be made again.
                continue
            except AnnabelleError as error:
                return ToolResult.failure(error.body(context.trace_id)).model_copy(update={"trust": "trusted"})
        stopped = TurnCancelled("It was stopped again and again before it was done.")
        return ToolResult.failure(stopped.body(context.trace_id)).model_copy(update={"trust": "trusted"})

    async def _call(self, task: Task, context: CallContext, answer: Approval | None) -> ToolResult:
        """`answer` is what the person said when the task asked, if it did: their changes are what is called with."""
        parts = self._parts
        name, arguments = str(task.request["tool"]), cast("JsonObject", task.request["arguments"])
        if answer is not None and answer.state == "denied":
            said = f" {answer.note}" if answer.note else ""
            raise NotAllowed(f"The answer was no, so {name} was not called.{said}")
        if answer is not None and answer.edited is not None:
            arguments = answer.edited
        there = parts.toolbox.tools().tools
        if context.user_id != OWNER:
            theirs = parts.people.policy(context.user_id, there, in_turn=context.caller == "agent")
            if not theirs.permits(name):
                raise refusal(context.user_id, name)
        if parts.toolbox.wants_provenance(name):
            spec = next((one for one in there if one.name == name), None)
            context = await labelled(parts.database, context, spec, arguments)
        return await parts.toolbox.call(name, arguments, context, self.policy(context))
