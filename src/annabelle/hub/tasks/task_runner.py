"""The durable workflow of a task: started once, finished over any crash, and told once (I-26)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.core.errors import AgentPaused, AgentStopped, NotFound, OutcomeUnknown, StorageTrouble, Unavailable
from annabelle.core.ids import new_id
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trace import use_trace
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.expiry import close_questions
from annabelle.hub.approvals.questions import settle_task
from annabelle.hub.base import HubLifecycle, HubStorage
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.tasks.subagents import Subagents, subagent_id
from annabelle.hub.tasks.task_notices import tell_end, tell_question
from annabelle.store import approvals, messages, tasks
from annabelle.store.approvals import Approval
from annabelle.store.tasks import NewTask, StoredTask, TaskKind, TaskState

_log = logging.getLogger(__name__)
RUN_TASK: Final = "run_task"
_PAUSE_SECONDS: Final = 1.0
_DISK_SECONDS: Final = 1.0

TaskWork = Callable[[StoredTask], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDeps:
    """What the workflow works with."""

    storage: HubStorage
    agents: AgentManager
    lifecycle: HubLifecycle


class TaskInterrupted(Exception):
    """The hub stops while somebody waits for a task. No answer is written down, so the same call finds the task again.

    Not one of the errors of `core.errors`, because those are kept as the call's result.
    """


def make_task_id(context: CallContext) -> str:
    """The same call has the same task, however often it is made."""
    if context.call_id is None:
        return new_id("task")
    digest = hashlib.sha256(f"{context.user_id}:{context.call_id}".encode()).hexdigest()
    return f"task_{digest[:26]}"


class TaskRunner:
    """Takes tasks on and sees them through. `subagents` is there for who shows what is at work."""

    def __init__(self, parts: TaskDeps, subagents: Subagents, call_tool: TaskWork) -> None:
        self._deps, self.subagents = parts, subagents
        self._work: dict[TaskKind, TaskWork] = {"subagent": subagents.run, "tool_call": call_tool}
        self._stopped = asyncio.Event()
        self._taking_on = asyncio.Lock()
        parts.storage.durable.workflow(RUN_TASK)(self._run)

    async def begin(self, new: NewTask, at_once: int | None = None) -> StoredTask:
        """Take a task on; it is on disk when this returns. The same id again finds the same task."""
        async with self._taking_on:  # two at once would both count the same ones at work
            task = await self._deps.storage.database.write(lambda conn: tasks.create_task(conn, new, at_once))
        if task.open:
            await self._start(task)
        return task

    async def result(self, task: StoredTask, timeout: float) -> ToolResult:
        """What came of a task, when it is over; Unavailable when it takes longer, Interrupted when the hub stops."""
        try:
            await self._deps.storage.durable.result(task.id, timeout)
        except Unavailable as error:
            if not self._deps.lifecycle.stopping:
                raise
            await self._stopped.wait()  # whoever asked is stopped first, and must not be told of a failure
            raise TaskInterrupted from error
        ended = await self._deps.storage.database.read(lambda conn: tasks.load_task(conn, task.id))
        return ToolResult.model_validate(ended.result)

    async def status(self, task_id: str, user_id: str) -> StoredTask:
        return await self._deps.storage.database.read(lambda conn: tasks.get_task(conn, task_id, user_id))

    async def stop(self) -> None:
        """Let go of those who wait; after the agents are stopped."""
        self._stopped.set()

    async def tidy(self) -> None:
        """Before anything runs: remove what subagents of an earlier life left behind."""
        unfinished = await self._deps.storage.database.read(tasks.list_unfinished_tasks)
        await asyncio.to_thread(self.subagents.tidy, unfinished)

    async def continue_task(self, task_id: str) -> None:
        """A question of the task was answered: do the rest of it."""
        task = await self._deps.storage.database.read(lambda conn: tasks.load_task(conn, task_id))
        if task.open:
            await self._start(task)

    async def resume(self) -> None:
        """After a start: begin what was written down and not begun, and end what can not go on."""
        for task in await self._deps.storage.database.read(tasks.list_unfinished_tasks):
            if await self.is_waiting(task):
                continue
            state = await self._deps.storage.durable.status(await self._flow_id(task))
            if state is None:
                await self._start(task)
            elif state != "running":
                lost = OutcomeUnknown("It was interrupted, and how far it came is not known.")
                await self._end(task, ToolResult.failure(lost.body()))

    async def _start(self, task: StoredTask) -> None:
        trace_id = cast("JsonObject", task.request["context"]).get("trace_id")
        await self._deps.storage.durable.start(
            RUN_TASK, await self._flow_id(task), {"task_id": task.id, "trace_id": trace_id}
        )

    async def is_waiting(self, task: StoredTask) -> bool:
        """Whether it waits for a person's yes."""
        return any(one.state == "pending" for one in await self._load_approvals(task))

    async def _flow_id(self, task: StoredTask) -> str:
        """Of the flow that does the next part: one up to the first question, and one after each answer."""
        answered = sum(one.state != "pending" for one in await self._load_approvals(task))
        return f"{task.id}:{answered}" if answered else task.id

    async def _load_approvals(self, task: StoredTask) -> list[Approval]:
        return await self._deps.storage.database.read(lambda conn: approvals.list_root_approvals(conn, task.id))

    async def _run(self, argument: JsonObject) -> JsonObject:
        parts, task_id = self._deps, str(argument["task_id"])
        with use_trace(cast("str | None", argument["trace_id"])):
            task = await parts.storage.database.read(lambda conn: tasks.load_task(conn, task_id))
            await self._while_paused(task)
            await parts.storage.database.write(lambda conn: tasks.begin_task(conn, task_id))
            parts.storage.traces.write("task.started", {"task_id": task_id, "kind": task.kind})

            async def run_kind() -> JsonObject:
                return (await self._work[task.kind](task)).model_dump(mode="json")

            result = ToolResult.model_validate(await parts.storage.durable.step("work", run_kind))
            if result.approval_id is not None:
                await self._show_question(task)
                parts.storage.traces.write("task.waits", {"task_id": task_id, "kind": task.kind})
                return {"state": "waiting"}
            state = await self._end_until_stored(task, result)
            parts.storage.traces.write("task.finished", {"task_id": task_id, "kind": task.kind, "state": state})
            if task.kind == "subagent":
                await asyncio.to_thread(self.subagents.remove, subagent_id(task.agent_id or "", task.id))
            return {"state": state}

    async def _while_paused(self, task: StoredTask) -> None:
        """A paused agent's calls wait; its subagents are told at once, because somebody waits for them."""
        while task.kind == "tool_call" and task.agent_id is not None:
            try:
                self._deps.agents.check_paused(task.agent_id)
            except AgentStopped:
                return  # it ends with that sentence: what was stopped must not begin on its own, long after
            except AgentPaused:
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return

    async def _show_question(self, task: StoredTask) -> None:
        """Show the question to whoever follows the thread. It is the same event again after a crash.

        A stop that came while it was being asked took back what it saw; this one it may not have seen.
        """
        stopped = self._stopped_agent(task)

        def write(conn: Connection) -> WriteResult[None]:
            waiting = [one for one in approvals.list_root_approvals(conn, task.id) if one.state == "pending"]
            told = [event for one in waiting for event in tell_question(conn, one)]
            if stopped:
                told += [
                    event for one in waiting for event in close_questions(conn, one.message_id, "cancelled").events
                ]
            return WriteResult(None, task.user_id, told)

        await self._deps.storage.events.transact(write)

    def _stopped_agent(self, task: StoredTask) -> bool:
        try:
            self._deps.agents.check_paused(task.agent_id or "")
        except AgentStopped:
            return True
        except AgentPaused:
            return False
        return False

    async def _end_until_stored(self, task: StoredTask, result: ToolResult) -> TaskState:
        while True:
            try:
                return await self._end(task, result)
            except (StorageTrouble, Unavailable) as trouble:
                # A result is never given up: a full disk is waited for, and a restart begins here again.
                _log.error("The end of %s could not be written yet: %s", task.id, trouble.message)
                await asyncio.sleep(_DISK_SECONDS)

    async def _end(self, task: StoredTask, result: ToolResult) -> TaskState:
        """Keep the result and, when nobody waits for it, say it in the thread: one transaction, once."""
        state = _end_state(result)
        kept: JsonObject = result.model_dump(mode="json")  # whole: a trust that is left out would be read as ours

        def write(conn: Connection) -> WriteResult[None]:
            first = tasks.finish_task(conn, task.id, state, kept)
            settle_task(conn, task)
            if not first or _awaited(conn, task):
                return WriteResult(None, task.user_id)
            return WriteResult(None, task.user_id, tell_end(conn, tasks.load_task(conn, task.id)))

        await self._deps.storage.events.transact(write)
        return state


def _awaited(conn: Connection, task: StoredTask) -> bool:
    """Whether the turn that sent a subagent still waits for it. A queued call is awaited by nobody.

    A turn that ends without having heard of it tells it with its delivery (`hub.flows.deliver`).
    """
    if task.kind != "subagent" or task.message_id is None:
        return False
    try:
        return messages.load_message(conn, task.message_id).state == "running"
    except NotFound:
        return False


def _end_state(result: ToolResult) -> TaskState:
    if not result.is_error:
        return "done"
    unknown = result.error is not None and result.error.code == OutcomeUnknown.code
    return "unknown" if unknown else "failed"
