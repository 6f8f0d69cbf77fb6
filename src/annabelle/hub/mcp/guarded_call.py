"""Tool calls of programs that speak MCP: the same checks as for any agent, and the person is asked where they must be.

The question belongs to a task, so it outlives the call that led to it: nobody has to keep a connection open until the
person answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.contract import ToolCall
from annabelle.core.errors import AnnabelleError
from annabelle.core.ids import new_id
from annabelle.core.tools import CallContext, ToolResult, ToolSpec
from annabelle.hub.api.tools import call_guarded
from annabelle.hub.approvals.questions import render_questions
from annabelle.hub.context import HubContext
from annabelle.hub.conversations.event_log import EventReader, follow_events
from annabelle.hub.security.identities import CallerIdentity
from annabelle.hub.tasks.task_runner import make_task_id
from annabelle.store import approvals, tasks, threads
from annabelle.store.approvals import Approval, OpenQuestionFilter
from annabelle.store.tasks import NewTask, StoredTask
from annabelle.toolbox.call_hooks import YesNeeded

MCP_CHAT = "mcp"
"""The chat in which the questions of a caller's tool calls are asked, and in which it talks unless it names another."""
WAIT_SECONDS = 50.0
"""Most clients give up on a call after a minute."""
_NEXT = "Nothing was done yet, and only the person can answer. check_notifications tells what comes of it."


def list_guarded_tools(hub: HubContext, caller: CallerIdentity) -> list[ToolSpec]:
    """What this outside agent may call for its person."""
    access = hub.tool_access
    policy = access.user_policy(CallContext(caller="agent", user_id=caller.user_id))
    return [spec for spec in access.tools_for(caller).tools if policy is None or policy.permits(spec.name)]


@dataclass(frozen=True, slots=True)
class GuardedCalls:
    """Makes the calls of outside agents. What needs a yes is asked, and the answer awaited for a while."""

    hub: HubContext
    _cancelled: BackgroundTasks = field(default_factory=BackgroundTasks)

    async def call(self, caller: CallerIdentity, call: ToolCall) -> ToolResult:
        try:
            return await call_guarded(self.hub, caller, call)
        except YesNeeded:
            return await self._ask_and_wait(caller, call)

    async def _ask_and_wait(self, caller: CallerIdentity, call: ToolCall) -> ToolResult:
        hub = self.hub
        context = await hub.tool_access.make_context(caller, call, None)
        channel, agent_id = caller.outside_agent or "", context.agent_id or ""

        def find_thread(conn: Connection) -> tuple[str, int]:
            thread = threads.find_or_create_thread(
                conn, channel=channel, chat_id=MCP_CHAT, user_id=caller.user_id, agent_id=agent_id
            )
            return thread.id, threads.last_event_number(conn, caller.user_id)

        thread_id, last = await hub.storage.database.write(find_thread)
        here = {"thread_id": thread_id, "chat_id": MCP_CHAT, "channel": channel}
        asking = asyncio.ensure_future(hub.services.tasks.begin(_make_task(call, context.model_copy(update=here))))
        reader = EventReader(caller.user_id, thread_id, last, caller.grant.hash)
        try:
            task = await asyncio.shield(asking)
            await _wait_for_end(hub, reader, task)
        except asyncio.CancelledError:
            self._cancelled.start(self._withdraw(asking))
            raise
        return await _read_outcome(hub, task)

    async def _withdraw(self, asking: asyncio.Future[StoredTask]) -> None:
        """The caller does not want it any more. A yes that came first holds."""
        with contextlib.suppress(AnnabelleError):  # if it was not asked, there is nothing to withdraw
            task = await asking
            withdrawal = self.hub.conversations.stopper.withdrawal
            await withdrawal.withdraw(OpenQuestionFilter(turn=task.id), "The caller cancelled it")


def _make_task(call: ToolCall, context: CallContext) -> NewTask:
    call_id = context.call_id or new_id("call")
    return NewTask(
        id=make_task_id(context),
        kind="tool_call",
        user_id=context.user_id,
        name=f"{call.name} for {context.channel}",
        request={
            "tool": call.name,
            "arguments": call.arguments,
            "context": context.model_copy(update={"call_id": None}).model_dump(mode="json"),
            "queued_as": call_id,
        },
        agent_id=context.agent_id,
        thread_id=context.thread_id,
        message_id=None,
    )


async def _wait_for_end(hub: HubContext, reader: EventReader, task: StoredTask) -> None:
    """Return when the task is over, or when the caller has waited long enough."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            async with contextlib.aclosing(
                follow_events(reader, hub.storage.database, hub.conversations.fanout)
            ) as events:
                async for _event in events:
                    if not (await hub.services.tasks.status(task.id, task.user_id)).open:
                        return
    except TimeoutError:
        return


async def _read_outcome(hub: HubContext, task: StoredTask) -> ToolResult:
    def read(conn: Connection) -> tuple[StoredTask, list[Approval]]:
        return tasks.load_task(conn, task.id), approvals.list_root_approvals(conn, task.id)

    now, asked = await hub.storage.database.read(read)
    if now.result is not None:
        return ToolResult.model_validate(now.result)
    waiting = [one for one in asked if one.state == "pending"]
    question = render_questions(waiting) if waiting else f"{task.name} goes on."
    approval_id = waiting[-1].id if waiting else None
    return ToolResult(
        text=f"{question}\n\n{_NEXT}" if waiting else question, trust="trusted", source="own", approval_id=approval_id
    )
