"""The durable workflow of a task: started once, finished despite crashes, reported once (I-26)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.core.errors import AgentPaused, AgentStopped, NotFound, OutcomeUnknown, Unavailable
from annabelle.core.ids import new_id
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trace import use_trace
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.expiry import close_questions
from annabelle.hub.approvals.questions import settle_task
from annabelle.hub.base import HubLifecycle, HubStorage, write_until_stored
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.tasks.subagents import Subagents, subagent_id
from annabelle.hub.tasks.task_notices import tell_end, tell_question
from annabelle.store import approvals, messages, tasks
from annabelle.store.approvals import Approval
from annabelle.store.tasks import NewTask, StoredTask, TaskKind, TaskState

_log = logging.getLogger(__name__)
RUN_TASK: Final = "run_task"
_PAUSE_SECONDS: Final = 1.0

TaskWork = Callable[[StoredTask], Awaitable[ToolResult]]


class TaskInterrupted(Exception):
    """The hub stops while a call waits. Not an `AnnabelleError`: those are stored as the call's result."""


def make_task_id(context: CallContext) -> str:
    """Id of the task for a call. The same call id gives the same task."""
    if context.call_id is None:
        return new_id("task")
    digest = hashlib.sha256(f"{context.user_id}:{context.call_id}".encode()).hexdigest()
    return f"task_{digest[:26]}"


class TaskRunner:
    def __init__(
        self,
        *,
        storage: HubStorage,
        agents: AgentManager,
        lifecycle: HubLifecycle,
        subagents: Subagents,
        call_tool: TaskWork,
    ) -> None:
        self._storage, self._agents, self._lifecycle, self.subagents = storage, agents, lifecycle, subagents
        self._work: dict[TaskKind, TaskWork] = {"subagent": subagents.run, "tool_call": call_tool}
        self._stopped = asyncio.Event()
        self._taking_on = asyncio.Lock()
        storage.durable.workflow(RUN_TASK)(self._run)

    async def begin(self, new: NewTask, at_once: int | None = None) -> StoredTask:
        """Create and start a task. It is on disk when this returns; the same id finds the same task."""
        async with self._taking_on:  # or two calls would both pass the limit
            task = await self._storage.database.write(lambda conn: tasks.create_task(conn, new, at_once))
        if task.open:
            await self._start(task)
        return task

    async def result(self, task: StoredTask, timeout: float) -> ToolResult:
        """Waits for the result. Raises Unavailable on timeout, TaskInterrupted if the hub stops."""
        try:
            await self._storage.durable.result(task.id, timeout)
        except Unavailable as error:
            if not self._lifecycle.stopping:
                raise
            await self._stopped.wait()  # the waiting agent is stopped first, so it sees no failure
            raise TaskInterrupted from error
        ended = await self._storage.database.read(lambda conn: tasks.load_task(conn, task.id))
        return ToolResult.model_validate(ended.result)

    async def status(self, task_id: str, user_id: str) -> StoredTask:
        return await self._storage.database.read(lambda conn: tasks.get_task(conn, task_id, user_id))

    async def stop(self) -> None:
        """Release the waiters. Call it after the agents are stopped."""
        self._stopped.set()

    async def tidy(self) -> None:
        """Remove what subagents of an earlier process left. Call it before anything runs."""
        unfinished = await self._storage.database.read(tasks.list_unfinished_tasks)
        await asyncio.to_thread(self.subagents.tidy, unfinished)

    async def continue_task(self, task_id: str) -> None:
        task = await self._storage.database.read(lambda conn: tasks.load_task(conn, task_id))
        if task.open:
            await self._start(task)

    async def resume(self) -> None:
        """After a start, begin tasks that were not begun, and end those that cannot continue."""
        for task in await self._storage.database.read(tasks.list_unfinished_tasks):
            if await self.is_waiting(task):
                continue
            state = await self._storage.durable.status(await self._flow_id(task))
            if state is None:
                await self._start(task)
            elif state != "running":
                lost = OutcomeUnknown("It was interrupted, and how far it came is not known.")
                await self._end(task, ToolResult.failure(lost.body()))

    async def _start(self, task: StoredTask) -> None:
        trace_id = cast("JsonObject", task.request["context"]).get("trace_id")
        await self._storage.durable.start(
            RUN_TASK, await self._flow_id(task), {"task_id": task.id, "trace_id": trace_id}
        )

    async def is_waiting(self, task: StoredTask) -> bool:
        return any(one.state == "pending" for one in await self._load_approvals(task))

    async def _flow_id(self, task: StoredTask) -> str:
        """Id of the workflow for the next part: one until the first question, and one after each answer."""
        answered = sum(one.state != "pending" for one in await self._load_approvals(task))
        return f"{task.id}:{answered}" if answered else task.id

    async def _load_approvals(self, task: StoredTask) -> list[Approval]:
        return await self._storage.database.read(lambda conn: approvals.list_root_approvals(conn, task.id))

    async def _run(self, argument: JsonObject) -> JsonObject:
        storage, task_id = self._storage, str(argument["task_id"])
        with use_trace(cast("str | None", argument["trace_id"])):
            task = await storage.database.read(lambda conn: tasks.load_task(conn, task_id))
            await self._while_paused(task)
            await storage.database.write(lambda conn: tasks.begin_task(conn, task_id))
            storage.traces.write("task.started", {"task_id": task_id, "kind": task.kind})

            async def run_kind() -> JsonObject:
                return (await self._work[task.kind](task)).model_dump(mode="json")

            result = ToolResult.model_validate(await storage.durable.step("work", run_kind))
            if result.approval_id is not None:
                await self._show_question(task)
                storage.traces.write("task.waits", {"task_id": task_id, "kind": task.kind})
                return {"state": "waiting"}
            state = await write_until_stored(f"The end of {task.id}", lambda: self._end(task, result))
            storage.traces.write("task.finished", {"task_id": task_id, "kind": task.kind, "state": state})
            if task.kind == "subagent":
                await asyncio.to_thread(self.subagents.remove, subagent_id(task.agent_id or "", task.id))
            return {"state": state}

    async def _while_paused(self, task: StoredTask) -> None:
        """Wait while the agent is paused. Subagents do not wait, because a turn waits for them."""
        while task.kind == "tool_call" and task.agent_id is not None:
            try:
                self._agents.check_paused(task.agent_id)
            except AgentStopped:
                return  # the call then fails: stopped work must not start on its own much later
            except AgentPaused:
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return

    async def _show_question(self, task: StoredTask) -> None:
        """Show the task's questions in its thread. Closes them if the agent was stopped meanwhile. Idempotent."""
        stopped = self._stopped_agent(task)

        def write(conn: Connection) -> WriteResult[None]:
            waiting = [one for one in approvals.list_root_approvals(conn, task.id) if one.state == "pending"]
            told = [event for one in waiting for event in tell_question(conn, one)]
            if stopped:
                told += [
                    event for one in waiting for event in close_questions(conn, one.message_id, "cancelled").events
                ]
            return WriteResult(None, task.user_id, told)

        await self._storage.events.transact(write)

    def _stopped_agent(self, task: StoredTask) -> bool:
        try:
            self._agents.check_paused(task.agent_id or "")
        except AgentStopped:
            return True
        except AgentPaused:
            return False
        return False

    async def _end(self, task: StoredTask, result: ToolResult) -> TaskState:
        """Store the result, and post it if no turn waits for it, in one transaction."""
        state = _end_state(result)
        kept: JsonObject = result.model_dump(mode="json")  # whole, because a missing trust reads as trusted

        def write(conn: Connection) -> WriteResult[None]:
            first = tasks.finish_task(conn, task.id, state, kept)
            settle_task(conn, task)
            if not first or _awaited(conn, task):
                return WriteResult(None, task.user_id)
            return WriteResult(None, task.user_id, tell_end(conn, tasks.load_task(conn, task.id)))

        await self._storage.events.transact(write)
        return state


def _awaited(conn: Connection, task: StoredTask) -> bool:
    """Whether the turn of a subagent still runs. If it ends without the result, its delivery posts it."""
    if task.kind != "subagent" or task.message_id is None:
        return False
    try:
        return messages.load_message(conn, task.message_id).state == "running"
    except NotFound:
        return False


def _end_state(result: ToolResult) -> TaskState:
    if not result.is_error:
        return "done"
    return "unknown" if result.is_unknown else "failed"
