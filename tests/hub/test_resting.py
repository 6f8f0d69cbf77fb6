"""When a thread has rested: what is said postpones it, a paused agent keeps it waiting, no clock repeats it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from annabelle.core.errors import AgentPaused, Unavailable
from annabelle.core.messages import InboundMessage, now
from annabelle.core.settings import Settings
from annabelle.hub.memory.fact_extraction import TURNS_AT_ONCE
from annabelle.hub.memory.idle_threads import IdleThreads
from annabelle.store import memory_queue, messages, threads
from annabelle.store.database import Database
from annabelle.store.memory_queue import IdleThread
from annabelle.store.messages import QueueLimits, StoredMessage
from support import timing

LONG = 3600.0


class Agents:
    """What resting asks of the agents."""

    def __init__(self) -> None:
        self.registry = self
        self.enabled = True
        self.paused = 0

    def find(self, agent_id: str) -> Agents | None:
        return self if agent_id == "annabelle" else None

    def check_paused(self, agent_id: str) -> None:
        if self.paused:
            self.paused -= 1
            raise AgentPaused("It is paused.")


class Learner:
    def __init__(self) -> None:
        self.learnt: list[IdleThread] = []
        self.again = asyncio.Event()
        self.fails = 0

    async def __call__(self, idle: IdleThread) -> None:
        if self.fails:
            self.fails -= 1
            raise Unavailable("The engine is not running.")
        self.learnt.append(idle)
        self.again.set()

    async def wait(self) -> str:
        await asyncio.wait_for(self.again.wait(), timing.seconds(10))
        self.again.clear()
        return self.learnt[-1].last_message_id


@pytest.fixture
def agents() -> Agents:
    return Agents()


@pytest.fixture
def learner() -> Learner:
    return Learner()


@pytest.fixture
async def resting(
    database: Database, agents: Agents, learner: Learner
) -> AsyncIterator[Callable[[float], IdleThreads]]:
    made: list[IdleThreads] = []

    def make(seconds: float) -> IdleThreads:
        made.append(IdleThreads(database, agents, seconds, learner))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        await one.stop()


async def delivered(
    database: Database, due_in: float, *, state: str = "done", agent_id: str = "annabelle"
) -> StoredMessage:
    inbound = InboundMessage(channel="api", chat_id="main", sender_id="me", text="hello")

    def enter(conn: Connection) -> StoredMessage:
        thread = threads.find_or_create_thread(conn, channel="api", chat_id="main", user_id="owner", agent_id=agent_id)
        message = messages.queue_message(conn, thread, inbound, QueueLimits()).message
        messages.set_message_state(conn, message.id, state)  # type: ignore[arg-type]
        memory_queue.put_idle_thread(conn, message, agent_id, now() + timedelta(seconds=due_in))
        return message

    return await database.write(enter)


async def gone(database: Database) -> None:
    deadline = asyncio.get_running_loop().time() + timing.seconds(10)
    while True:
        if not await database.read(memory_queue.list_idle_threads):
            return
        assert asyncio.get_running_loop().time() < deadline, "a thread that was taken up still waits"
        await asyncio.sleep(0.005)


@pytest.mark.req("MEM-07")
def test_a_thread_rests_for_five_minutes_and_a_fact_must_be_sure_unless_somebody_says_otherwise() -> None:
    settings = Settings.model_validate({})
    assert (settings.fact_extraction_enabled, settings.fact_extraction_idle_seconds) == (True, 300)
    assert settings.fact_extraction_confidence == 0.7
    assert TURNS_AT_ONCE == 10, "twenty messages"


@pytest.mark.req("MEM-07")
async def test_a_thread_that_has_rested_is_taken_up_once(
    database: Database, resting: Callable[[float], IdleThreads], learner: Learner
) -> None:
    message = await delivered(database, 0.01)
    made = resting(0.01)
    made.restart_timer(message.thread_id)
    assert await learner.wait() == message.id
    await gone(database)
    again = resting(0.01)
    await again.start()
    later = await delivered(database, 0.01)
    again.restart_timer(later.thread_id)
    assert await learner.wait() == later.id
    assert [one.last_message_id for one in learner.learnt] == [message.id, later.id]


@pytest.mark.req("MEM-07")
async def test_something_said_meanwhile_postpones_it(
    database: Database, resting: Callable[[float], IdleThreads], learner: Learner
) -> None:
    first = await delivered(database, 0.0)
    made = resting(0.3)
    made.restart_timer(first.thread_id)
    second = await delivered(database, 0.3)
    made.restart_timer(second.thread_id)
    assert await learner.wait() == second.id
    await gone(database)
    assert len(learner.learnt) == 1


@pytest.mark.req("MEM-07")
async def test_a_message_in_work_keeps_the_thread_from_resting(
    database: Database, resting: Callable[[float], IdleThreads], learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = await delivered(database, 0.0, state="running")
    looked, looks, real = asyncio.Event(), itertools.count(1), database.read

    async def read(query: Callable[[Connection], object]) -> object:
        if next(looks) == 3:
            looked.set()
        return await real(query)

    monkeypatch.setattr(database, "read", read)
    resting(0.01).restart_timer(message.thread_id)
    await asyncio.wait_for(looked.wait(), timing.seconds(10))
    assert learner.learnt == []
    await database.write(lambda conn: messages.set_message_state(conn, message.id, "failed"))
    assert await learner.wait() == message.id


@pytest.mark.req("MEM-07")
async def test_what_rested_when_a_hub_ended_is_taken_up_by_the_next(
    database: Database, resting: Callable[[float], IdleThreads], learner: Learner
) -> None:
    message = await delivered(database, -LONG)
    await resting(LONG).start()
    assert await learner.wait() == message.id


@pytest.mark.req("MEM-07")
async def test_a_clock_that_was_set_back_delays_it_by_one_rest_at_most(
    database: Database, resting: Callable[[float], IdleThreads], learner: Learner
) -> None:
    message = await delivered(database, 10 * 365 * 86_400.0)
    await resting(0.01).start()
    assert await learner.wait() == message.id


@pytest.mark.req("MEM-07")
async def test_a_paused_agent_and_a_failed_start_are_tried_after_another_rest(
    database: Database, resting: Callable[[float], IdleThreads], learner: Learner, agents: Agents
) -> None:
    agents.paused, learner.fails = 2, 2
    message = await delivered(database, 0.0)
    resting(0.005).restart_timer(message.thread_id)
    assert await learner.wait() == message.id
    assert (agents.paused, learner.fails) == (0, 0)


@pytest.mark.req("MEM-07")
async def test_nobody_learns_for_an_agent_that_is_gone(
    database: Database, resting: Callable[[float], IdleThreads], learner: Learner
) -> None:
    message = await delivered(database, 0.0, agent_id="gone")
    resting(0.005).restart_timer(message.thread_id)
    await gone(database)
    assert learner.learnt == []
