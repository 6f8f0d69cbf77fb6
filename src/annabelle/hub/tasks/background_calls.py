"""Background tool calls: judged when queued, and again when made (POL-03, RTR-05)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from annabelle.agents.subagent import FORBIDDEN_TOOLS
from annabelle.core.errors import AnnabelleError, NotAllowed, RetryByModel, TurnCancelled
from annabelle.core.ports import Judge
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import PolicyDecision
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.approvals.questions import make_task_call_id
from annabelle.hub.base import HubLifecycle
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.hub.trust.call_records import label_provenance
from annabelle.store import approvals
from annabelle.store.approvals import Approval
from annabelle.store.database import Database
from annabelle.store.tasks import StoredTask
from annabelle.toolbox.catalogue import NATIVE, AgentPolicy
from annabelle.toolbox.facade import Toolbox, ToolServers

_MOST_STOPS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundCalls:
    """Makes queued calls with all checks, under the policy in force at that time."""

    database: Database
    toolbox: Toolbox
    agents: AgentManager
    access: ToolAccess
    lifecycle: HubLifecycle

    def policy(self, context: CallContext) -> AgentPolicy | None:
        return self.agents.registry.policy_of(context)

    async def run(self, task: StoredTask) -> ToolResult:
        """Make the call. It has an id, so after a crash it is not repeated; its outcome may be unknown."""
        context = CallContext.model_validate(task.request["context"])
        queued_as = task.request.get("queued_as")
        context = context.model_copy(update={"queued_as": queued_as, "askable": queued_as is not None})
        asked = await self.database.read(lambda conn: approvals.list_root_approvals(conn, task.id))
        await self.lifecycle.wait_ready()
        for attempt in range(_MOST_STOPS):
            try:
                if context.caller == "agent":
                    self.agents.check_paused(context.agent_id or "")
                made_as = context.model_copy(update={"call_id": make_task_call_id(task.id, attempt)})
                return await self._call(task, made_as, asked[-1] if asked else None)
            except TurnCancelled:
                # A clean stop cancelled it, which is only reported for calls that can be repeated.
                continue
            except AnnabelleError as error:
                return ToolResult.failure(error.body(context.trace_id)).model_copy(update={"trust": "trusted"})
        stopped = TurnCancelled("It was stopped again and again before it was done.")
        return ToolResult.failure(stopped.body(context.trace_id)).model_copy(update={"trust": "trusted"})

    async def _call(self, task: StoredTask, context: CallContext, answer: Approval | None) -> ToolResult:
        """`answer`: the person's answer to the task's question, whose edited arguments are used."""
        name, arguments = str(task.request["tool"]), cast("JsonObject", task.request["arguments"])
        if answer is not None and answer.state == "denied":
            said = f" {answer.note}" if answer.note else ""
            raise NotAllowed(f"The answer was no, so {name} was not called.{said}")
        if answer is not None and answer.edited is not None:
            arguments = answer.edited
        self.access.check_user(context, name)
        if self.toolbox.wants_provenance(name):
            spec = next((one for one in self.toolbox.tools().tools if one.name == name), None)
            context = await label_provenance(self.database, context, spec, arguments)
        return await self.toolbox.call(name, arguments, context, self.policy(context))


QUEUE: Final = "queue_task"
_TYPES: Final = ("tool_call", "workflow")  # a workflow of one step is a call


def parse_queued_call(arguments: JsonObject, context: CallContext) -> tuple[str, JsonObject]:
    """The tool and arguments to queue. Raises RetryByModel if they are invalid, or the tool is not the turn's."""
    action = cast("JsonObject", arguments["action"])
    if action["type"] not in _TYPES:
        raise RetryByModel(
            f"A task of the type {action['type']} can not be queued.", hint="Use the type tool_call, one call per task."
        )
    if action.get("workflowSteps"):
        raise RetryByModel("A task is one tool call.", hint="Queue every step of the workflow as a task of its own.")
    tool = action.get("toolName")
    if not tool or tool in FORBIDDEN_TOOLS:
        raise RetryByModel(
            f"{tool} can not be queued." if tool else "action.toolName is missing.", hint="Name the tool to call."
        )
    if context.allowed_tools is not None and tool not in context.allowed_tools:
        raise RetryByModel(f"{tool} is not part of this work.", hint="Go on with the tools that are offered.")
    return str(tool), cast("JsonObject", action.get("parameters") or {})


@dataclass(frozen=True, slots=True)
class QueuedCallJudge:
    """Asks before a call is queued, while the person is there. That approval covers the call.

    If a call needs approval only by the time it is made, the task asks itself (`approvals.questions`). Calls that could
    not be made are never asked about.
    """

    inner: Judge
    servers: ToolServers
    registry: AgentRegistry

    async def judge(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> PolicyDecision:
        if tool.name != QUEUE or tool.server != NATIVE:
            return await self.inner.judge(tool, arguments, context)
        try:
            name, handed = parse_queued_call(arguments, context)
        except RetryByModel:
            return PolicyDecision()  # `queue_task` reports the error
        policy = self.registry.policy_of(context)
        usable = self.servers.catalogue.list_tools(policy, "api" if policy is None else "agent").tools
        spec = next((one for one in usable if one.name == name), None)
        if spec is None:
            return PolicyDecision()  # `queue_task` reports this too
        decision = await self.inner.judge(spec, handed, context)
        if decision.verdict != "ask":
            return decision.model_copy(update={"labels": ()})
        self.servers.router.check(name, handed, policy)
        reasons = (f"{name} is to be called in the background.", *decision.reasons)
        return decision.model_copy(update={"reasons": reasons, "labels": ()})
