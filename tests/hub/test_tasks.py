"""Tasks in the background: made once, under the rules of whoever asked, and told once (RTR-05, I-26)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, update

from annabelle.core.contract import TurnResult
from annabelle.core.home import Home
from annabelle.core.messages import OWNER, TurnEvent, now
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.boot import RunningHub
from annabelle.hub.conversations.message_workflow import deliver
from annabelle.hub.tasks.task_runner import make_task_id
from annabelle.store import messages, tables, tasks, threads
from annabelle.store.messages import StoredMessage
from annabelle.store.tasks import NewTask, StoredTask
from hub.task_hubs import Work, a_hub, turn
from support.timing import seconds


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
async def machine(home: Home, work: Work) -> AsyncIterator[RunningHub]:
    async with a_hub(home, work) as made:
        yield made


async def call(machine: RunningHub, tool: str, context: CallContext, **arguments: Any) -> ToolResult:
    return await machine.hub.toolbox.call(tool, arguments, context, machine.hub.agents.registry.policy("annabelle"))


async def queue(
    machine: RunningHub, context: CallContext, tool: str = "do_once", kind: str = "tool_call"
) -> ToolResult:
    action: JsonObject = {"type": kind, "toolName": tool, "parameters": {}}
    return await call(machine, "queue_task", context, name="Read it", action=action)


async def ended(machine: RunningHub, task_id: str) -> StoredTask:
    await machine.hub.storage.durable.result(task_id, 30)
    return await machine.hub.storage.database.read(lambda conn: tasks.load_task(conn, task_id))


async def said(machine: RunningHub, context: CallContext) -> list[StoredMessage]:
    listed = await machine.hub.storage.database.read(
        lambda conn: messages.list_messages(conn, context.thread_id or "", OWNER)
    )
    return [message for message in listed if message.kind == "said"]


@pytest.mark.req("RTR-05", "FST-05")
async def test_a_queued_call_is_made_once_for_the_person_and_told_in_the_thread(
    machine: RunningHub, work: Work
) -> None:
    context = await turn(machine)
    result = await queue(machine, context)
    again = await queue(machine, context)
    assert result.structured is not None
    task_id = str(result.structured["taskId"])
    assert (task_id, again.structured) == (make_task_id(context), result.structured)
    assert task_id in result.text
    assert result.display == "The task is queued. Its result is told in this chat."
    task = await ended(machine, task_id)
    (made,) = work.calls
    assert (made.caller, made.agent_id, made.user_id, made.message_id) == (
        "agent",
        "annabelle",
        OWNER,
        context.message_id,
    )
    assert task.state == "done"
    (told,) = await said(machine, context)
    assert told.content == "The task “Read it” is done. The page says hello."
    assert told.metadata["trust"] == "untrusted"
    status = await call(machine, "get_job_status", context.model_copy(update={"call_id": None}), taskId=task_id)
    assert (status.trust, "The page says hello." in status.text) == ("untrusted", True)


@pytest.mark.req("RTR-05")
async def test_a_workflow_of_one_step_is_queued_as_a_call_and_one_of_several_is_refused(
    machine: RunningHub, work: Work
) -> None:
    context = await turn(machine)
    queued = await queue(machine, context, "do_once", "workflow")
    assert not queued.is_error, queued.text
    await ended(machine, str((queued.structured or {})["taskId"]))
    assert len(work.calls) == 1
    called = context.model_copy(update={"call_id": f"{context.message_id}:2:9"})
    action = {"type": "workflow", "workflowSteps": [{"id": "1", "toolName": "do_once"}]}
    refused = await call(machine, "queue_task", called, name="steps", action=action)
    assert refused.is_error
    assert "A task is one tool call." in refused.text


@pytest.mark.req("RTR-05")
async def test_what_can_not_be_queued_is_refused_with_a_sentence(machine: RunningHub) -> None:
    context = await turn(machine)
    for number, (tool, kind, words) in enumerate(
        [
            ("do_once", "dance", "type dance can not be queued"),
            ("spawn_subagent", "tool_call", "spawn_subagent can not be queued"),
            ("nobody_has_this", "tool_call", "no tool nobody_has_this"),
        ]
    ):
        called = context.model_copy(update={"call_id": f"{context.message_id}:2:{number}"})
        result = await queue(machine, called, tool, kind)
        assert result.is_error
        assert words in result.text
    assert await machine.hub.storage.database.read(tasks.list_unfinished_tasks) == []


@pytest.mark.req("RTR-05")
async def test_a_task_of_somebody_else_is_not_found(machine: RunningHub) -> None:
    context = await turn(machine)
    result = await queue(machine, context)
    assert result.structured is not None
    other = context.model_copy(update={"user_id": "bob", "call_id": None})
    status = await call(machine, "get_job_status", other, taskId=result.structured["taskId"])
    assert (status.is_error, status.error and status.error.code) == (True, "not_found")


@pytest.mark.req("RTR-05", "AGT-05")
async def test_the_queued_calls_of_a_paused_agent_wait_until_it_is_resumed(machine: RunningHub, work: Work) -> None:
    context = await turn(machine)
    await machine.hub.agents.pause("annabelle", "too dear")
    result = await queue(machine, context)
    assert result.structured is not None
    task_id = str(result.structured["taskId"])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await work.begun.wait()
    assert (await machine.hub.services.tasks.status(task_id, OWNER)).state == "queued"
    await machine.hub.agents.resume("annabelle", False)
    assert (await ended(machine, task_id)).state == "done"


@pytest.mark.req("RTR-05")
@pytest.mark.parametrize(
    ("tool", "calls", "state", "words"),
    [("do_again", 2, "done", "The page says hello."), ("do_once", 1, "unknown", "whether it took effect is not known")],
)
async def test_a_hub_that_stops_takes_the_call_up_again_and_makes_none_twice_that_may_not(
    home: Home, work: Work, tool: str, calls: int, state: str, words: str
) -> None:
    work.go_on.clear()
    async with a_hub(home, work) as first:
        context = await turn(first)
        await queue(first, context, tool)
        await asyncio.wait_for(work.begun.wait(), seconds(30))
    work.go_on.set()
    async with a_hub(home, work) as second:
        task = await ended(second, make_task_id(context))
        (told,) = await said(second, context)
    assert (task.state, len(work.calls)) == (state, calls)
    assert words in told.content


@pytest.mark.req("AGT-04")
@pytest.mark.incident("I-26")
@pytest.mark.parametrize("over", [False, True])
async def test_a_subagents_result_is_told_in_the_thread_once_exactly_when_nobody_waits_for_it(
    machine: RunningHub, over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def run(_task: StoredTask) -> ToolResult:
        begun.set()
        await go_on.wait()
        return ToolResult(text="found it", trust="trusted")

    works: dict[str, Callable[[StoredTask], Awaitable[ToolResult]]] = machine.hub.services.tasks._work  # type: ignore[assignment]
    monkeypatch.setitem(works, "subagent", run)
    context = await turn(machine)
    waiting = asyncio.create_task(call(machine, "spawn_subagent", context, task="look"))
    await asyncio.wait_for(begun.wait(), seconds(30))
    if over:
        lost = TurnResult(message_id=context.message_id or "", success=False)
        await machine.hub.storage.database.write(lambda conn: deliver(conn, lost.message_id, lost))
    go_on.set()
    result = await asyncio.wait_for(waiting, seconds(30))
    assert (result.text, result.trust) == ("found it", "trusted")
    told = [message.content for message in await said(machine, context)]
    assert told == (["The task “look” is done. found it"] if over else [])
    again = await call(machine, "spawn_subagent", context, task="look")
    assert (again.text, len(await said(machine, context))) == ("found it", len(told))


@pytest.mark.req("AGT-04")
@pytest.mark.incident("I-26")
@pytest.mark.parametrize("heard", [False, True])
async def test_a_turn_that_ends_before_it_heard_of_its_subagents_result_has_it_told(
    machine: RunningHub, heard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(_task: StoredTask) -> ToolResult:
        return ToolResult(text="found it", trust="trusted")

    works: dict[str, Callable[[StoredTask], Awaitable[ToolResult]]] = machine.hub.services.tasks._work  # type: ignore[assignment]
    monkeypatch.setitem(works, "subagent", run)
    context = await turn(machine)
    message_id, thread_id = context.message_id or "", context.thread_id or ""
    await call(machine, "spawn_subagent", context, task="look")
    if heard:
        complete = TurnEvent(
            message_id=message_id, key="1:tool:0:complete", type="tool_complete", data={"call_id": context.call_id}
        )
        await machine.hub.storage.database.write(lambda conn: threads.append_events(conn, thread_id, [complete]))
    stopped = TurnResult(message_id=message_id, success=False)
    for _ in range(2):
        await machine.hub.storage.events.transact(lambda conn: deliver(conn, message_id, stopped))
    told = [message.content for message in await said(machine, context)]
    assert told == ([] if heard else ["The task “look” is done. found it"])


@pytest.mark.req("AGT-04")
async def test_a_subagent_that_takes_too_long_is_killed_and_the_result_says_so(machine: RunningHub) -> None:
    context = await turn(machine)
    new = NewTask(
        "task_late", "subagent", OWNER, "late", {"ask": {"task": "late"}, "context": context.model_dump(mode="json")},
        "annabelle", context.thread_id, context.message_id,
    )  # fmt: skip

    def an_hour_ago(conn: Connection) -> StoredTask:
        tasks.create_task(conn, new)
        conn.execute(update(tables.tasks).values(created_at=now() - timedelta(hours=1)))
        return tasks.load_task(conn, new.id)

    task = await machine.hub.storage.database.write(an_hour_ago)
    result = await machine.hub.services.tasks.subagents.run(task)
    assert result.error is not None
    assert result.error.code == "tool_timeout"
    assert "stays done" in result.text
    assert machine.hub.services.tasks.subagents.statuses() == []


@pytest.mark.req("AGT-04")
async def test_a_sixth_subagent_at_once_is_refused(machine: RunningHub) -> None:
    context = await turn(machine)
    request: JsonObject = {"context": {}}
    for number in range(5):
        new = NewTask(f"task_{number}", "subagent", OWNER, "x", request, "annabelle")
        await machine.hub.storage.database.write(lambda conn, new=new: tasks.create_task(conn, new))
    result = await call(machine, "spawn_subagent", context, task="one more")
    assert (result.is_error, "Wait until one has ended" in result.text) == (True, True)
