"""What an agent handed on to the background stops with it, and its questions are taken back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from annabelle.core.errors import AgentStopped
from annabelle.core.home import Home
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.core.trust import PolicyDecision
from annabelle.hub.agents.halts import Halts
from annabelle.hub.boot import RunningHub
from annabelle.hub.tasks.task_runner import make_task_id
from annabelle.store import approvals, tasks
from annabelle.store.audit.records import AuditPaths, AuditQuery, read_latest
from annabelle.store.tasks import StoredTask
from annabelle.toolbox.catalogue import NativeTool
from hub.task_hubs import ANY, Work, a_hub, turn
from support.timing import seconds


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
async def machine(home: Home, work: Work) -> AsyncIterator[RunningHub]:
    async with a_hub(home, work) as made:
        made.hub.toolbox.add_native(
            NativeTool(name, "x", ANY, work.do, ToolAnnotations(destructive=False, idempotent=again, open_world=False))
            for name, again in (("write_once", False), ("write_again", True))
        )
        yield made


async def queue(machine: RunningHub, context: CallContext, tool: str) -> ToolResult:
    action: JsonObject = {"type": "tool_call", "toolName": tool, "parameters": {}}
    asked: JsonObject = {"name": "Read it", "action": action}
    return await machine.hub.toolbox.call("queue_task", asked, context, machine.hub.agents.registry.policy("annabelle"))


async def ended(machine: RunningHub, context: CallContext) -> StoredTask:
    await machine.hub.storage.durable.result(make_task_id(context), 30)
    return await machine.hub.storage.database.read(lambda conn: tasks.load_task(conn, make_task_id(context)))


@pytest.mark.req("TRU-06", "RTR-05")
@pytest.mark.incident("I-27")
@pytest.mark.parametrize(("tool", "state"), [("write_again", "failed"), ("write_once", "unknown")])
async def test_a_call_in_the_background_ends_with_its_agent_and_is_not_made_again(
    machine: RunningHub, work: Work, tool: str, state: str
) -> None:
    work.go_on.clear()
    context = await turn(machine)
    await queue(machine, context, tool)
    await asyncio.wait_for(work.begun.wait(), seconds(30))
    await machine.hub.conversations.stopper.stop("annabelle", "owner")
    task = await ended(machine, context)
    assert (task.state, len(work.calls)) == (state, 1)
    work.go_on.set()
    await machine.hub.conversations.stopper.resume("annabelle", "owner")
    assert len(work.calls) == 1


@pytest.mark.req("TRU-06", "RTR-05")
async def test_what_is_queued_while_everything_is_stopped_ends_with_a_sentence_and_never_begins(
    machine: RunningHub, work: Work
) -> None:
    context = await turn(machine)
    await machine.hub.conversations.stopper.stop("all", "owner")
    await queue(machine, context, "write_again")
    task = await ended(machine, context)
    assert task.state == "failed"
    assert "Everything was stopped by the owner." in str(task.result)
    await machine.hub.conversations.stopper.resume("all", "owner")
    assert work.calls == []


@pytest.mark.req("TRU-06")
@pytest.mark.incident("I-28", "I-27")
async def test_questions_of_a_stopped_agent_are_taken_back(machine: RunningHub, home: Home) -> None:
    context = await turn(machine)
    spec = ToolSpec(name="do_once", server="native", original_name="do_once", description="", input_schema={})
    desk = machine.hub.toolbox._router._hooks.approvals  # pyright: ignore[reportPrivateUsage]
    assert desk is not None
    asked = await desk.ask(spec, {}, context, PolicyDecision(verdict="ask", reasons=("It sends mail.",)))
    assert asked.approval_id is not None
    approval_id = asked.approval_id
    await machine.hub.conversations.stopper.stop("annabelle", "owner")
    row = await machine.hub.storage.database.read(lambda conn: approvals.get_approval(conn, approval_id, "owner"))
    assert row.state == "cancelled"
    with pytest.raises(AgentStopped):
        machine.hub.agents.check_paused("annabelle")
    assert Halts(home.halts_file).agents == ("annabelle",)
    machine.hub.security.audit.flush()  # type: ignore[attr-defined]
    noted = [record.facts.get("event") for record in read_latest(AuditPaths.from_home(home), AuditQuery(kind="stop"))]
    assert noted == ["stopped"]


@pytest.mark.req("TRU-06")
@pytest.mark.incident("I-27")
async def test_a_turn_whose_thinker_could_not_be_told_is_written_down_to_be_told_later(
    machine: RunningHub, home: Home
) -> None:
    context = await turn(machine)
    assert context.message_id is not None
    with machine.hub.conversations.turns.open(context):
        await machine.hub.conversations.stopper.end_turn(context.message_id, "annabelle")
        await machine.hub.conversations.stopper.close()
    assert Halts(home.halts_file).owed_cancels("annabelle") == (context.message_id,)
