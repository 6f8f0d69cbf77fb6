"""Each delivered turn is stored once in the memory, after its delivery, under the agent and user that will read it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection, update

from annabelle.core.contract import TurnResult
from annabelle.core.messages import InboundMessage
from annabelle.hub.conversations.message_workflow import deliver
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.memory import memory_outbox as keeping
from annabelle.hub.memory.memory_client import MemoryClient
from annabelle.hub.memory.memory_outbox import MemoryOutbox
from annabelle.store import claims, memory_queue, messages, tables, threads, tool_calls
from annabelle.store.database import Database
from annabelle.store.messages import QueueLimits
from annabelle.store.tool_calls import NewToolCall
from hub.stand_in_memory import StandInMemory

Say = Callable[..., Awaitable[str]]


@pytest.fixture
def memory() -> StandInMemory:
    return StandInMemory()


async def _ready() -> None:
    pass


@pytest.fixture
async def keeper(
    database: Database, memory: StandInMemory, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MemoryOutbox]:
    monkeypatch.setattr(keeping, "FIRST_WAIT_SECONDS", 0.001)
    made = MemoryOutbox(database, MemoryClient(memory), _ready, owner_name="Ada")
    yield made
    await made.stop()


@pytest.fixture
def say(database: Database) -> Say:
    """Receive a message and deliver its answer, as the flow does."""

    async def said(
        text: str, answer: TurnResult | None = None, *, user: str = "owner", calls: tuple[tuple[str, str], ...] = ()
    ) -> str:
        inbound = InboundMessage(channel="api", chat_id="main", sender_id=user, user_id=user, text=text)

        def enter(conn: Connection) -> str:
            thread = threads.find_or_create_thread(
                conn, channel="api", chat_id="main", user_id=user, agent_id="annabelle"
            )
            messages.queue_message(conn, thread, inbound, QueueLimits())
            claims.claim_next_messages(conn, "hub", 8)
            for tool, trust in calls:
                call_id = f"{inbound.id}:{tool}"
                tool_calls.begin_call(conn, NewToolCall(call_id, tool, "hash", user, "annabelle", inbound.id))
                tool_calls.finish_call(conn, call_id, {"text": "x"}, trust)  # type: ignore[arg-type]
            if answer is not None and answer.sent_by_tool:
                messages.add_agent_message(conn, thread.id, answer.text, f"{inbound.id}:1:0", reply_to=inbound.id)
            result = answer or TurnResult(message_id=inbound.id, success=True, text=f"answer to {text}")
            deliver(conn, inbound.id, result, 300)
            return inbound.id

        return await database.write(enter)

    return said


async def all_kept(keeper: MemoryOutbox) -> None:
    keeper.start()
    assert await keeper.all_stored(10)


@pytest.mark.req("MEM-12", "TRU-03")
async def test_a_delivered_turn_is_stored_with_who_said_it_when_and_with_what(
    keeper: MemoryOutbox, memory: StandInMemory, database: Database, say: Say
) -> None:
    message_id = await say("I live in Lisbon", calls=(("get_status", "trusted"), ("filer_read_file", "untrusted")))
    await all_kept(keeper)
    ((key, row),) = memory.conversations.items()
    stored = await database.read(lambda conn: messages.load_message(conn, message_id))
    assert key == ("owner", "annabelle", message_id)
    assert row["user_message"] == "I live in Lisbon"
    assert row["agent_response"] == "answer to I live in Lisbon"
    assert row["session_id"] == stored.thread_id
    assert row["said_at"] == stored.created_at.isoformat()
    assert row["speaker"] == "Ada"
    assert set(row["tools"]) == {"get_status", "filer_read_file"}
    assert row["trust"] == "untrusted"
    (context,) = memory.contexts
    assert (context.thread_id, context.channel, context.message_id) == (stored.thread_id, "api", message_id)
    assert context.provenance is not None
    assert context.provenance.origins == ("filer_read_file",)
    assert await database.read(lambda conn: memory_queue.list_unstored_turns(conn, 10)) == []


@pytest.mark.req("MEM-12")
async def test_what_went_out_by_send_message_is_the_answer_that_is_stored(
    keeper: MemoryOutbox, memory: StandInMemory, say: Say
) -> None:
    await say("tell me", TurnResult(message_id="m", success=True, text="told you", sent_by_tool=True))
    await all_kept(keeper)
    ((_, row),) = memory.conversations.items()
    assert (row["agent_response"], row["trust"]) == ("told you", "trusted")


@pytest.mark.req("MEM-12")
async def test_a_failed_turn_is_not_stored_and_wakes_nothing(database: Database, say: Say) -> None:
    await say("hello", TurnResult(message_id="m", success=False))
    assert await database.read(lambda conn: memory_queue.list_unstored_turns(conn, 10)) == []
    assert await database.read(memory_queue.list_idle_threads) == []


@pytest.mark.req("MEM-12")
@pytest.mark.incident("I-30")
async def test_turns_of_two_people_are_stored_under_each_of_them_in_order(
    keeper: MemoryOutbox, memory: StandInMemory, say: Say
) -> None:
    said = [await say(f"number {n}", user="bob" if n % 2 else "owner") for n in range(6)]
    await all_kept(keeper)
    assert [key[2] for key in memory.conversations] == said
    assert [key[0] for key in memory.conversations] == ["owner", "bob"] * 3


@pytest.mark.req("MEM-12")
async def test_a_memory_that_is_away_gets_every_turn_once_when_it_is_back(
    keeper: MemoryOutbox, memory: StandInMemory, say: Say
) -> None:
    memory.away = 4
    first = await say("one")
    keeper.start()
    second = await say("two")
    keeper.wake()
    assert await keeper.all_stored(10)
    assert [key[2] for key in memory.conversations] == [first, second]
    assert memory.calls.count("memory_store_conversation") == 6


@pytest.mark.req("MEM-12")
async def test_a_turn_the_memory_refuses_is_left_out_and_holds_up_no_other(
    keeper: MemoryOutbox, memory: StandInMemory, database: Database, say: Say
) -> None:
    memory.refuses = "hunter2"
    await say("my password is hunter2")
    second = await say("good morning")
    await all_kept(keeper)
    assert [key[2] for key in memory.conversations] == [second]
    assert await database.read(lambda conn: memory_queue.list_unstored_turns(conn, 10)) == []


@pytest.mark.req("GRD-05", "MEM-12")
async def test_a_turn_waits_for_a_guardian_that_is_away_and_what_it_finds_is_tried_once(
    keeper: MemoryOutbox, memory: StandInMemory, database: Database, say: Say
) -> None:
    memory.unscanned, memory.blocked = 5, "EVIL"
    first = await say("one")
    await say("EVIL")
    third = await say("three")
    await all_kept(keeper)
    assert [key[2] for key in memory.conversations] == [first, third]
    assert memory.calls.count("memory_store_conversation") == 5 + 3
    assert await database.read(lambda conn: memory_queue.list_unstored_turns(conn, 10)) == []


@pytest.mark.req("MEM-12")
async def test_a_turn_handed_over_twice_is_one_conversation(
    keeper: MemoryOutbox, memory: StandInMemory, database: Database, say: Say
) -> None:
    """As when the hub dies after the memory has stored it and before the note is taken away."""
    message_id = await say("once")
    await all_kept(keeper)
    stored = await database.read(lambda conn: messages.load_message(conn, message_id))
    await database.write(lambda conn: memory_queue.add_unstored_turn(conn, stored, "annabelle"))
    keeper.wake()
    assert await keeper.all_stored(10)
    assert len(memory.conversations) == 1
    assert memory.calls.count("memory_store_conversation") == 2


@pytest.mark.req("MEM-12")
async def test_a_message_that_is_gone_is_not_waited_for(keeper: MemoryOutbox, database: Database, say: Say) -> None:
    message_id = await say("one")
    message = await database.read(lambda conn: messages.load_message(conn, message_id))
    await database.write(lambda conn: memory_queue.remove_unstored_turn(conn, message_id))
    gone = replace(message, id="msg_gone")
    await database.write(lambda conn: memory_queue.add_unstored_turn(conn, gone, "annabelle"))
    await all_kept(keeper)
    assert await database.read(lambda conn: memory_queue.list_unstored_turns(conn, 10)) == []


async def test_a_stop_leaves_the_rest_for_the_next_start(
    keeper: MemoryOutbox, memory: StandInMemory, database: Database, say: Say
) -> None:
    memory.away = 1_000_000
    await say("one")
    keeper.start()
    await asyncio.sleep(0)
    await keeper.stop()
    assert len(await database.read(lambda conn: memory_queue.list_unstored_turns(conn, 10))) == 1


@pytest.mark.req("TRU-09", "MEM-12")
async def test_nothing_is_carried_to_the_memory_while_something_is_forgotten(
    database: Database, memory: StandInMemory, say: Say
) -> None:
    quiet = MaintenanceGate()
    keeper = MemoryOutbox(database, MemoryClient(memory), _ready, quiet=quiet)
    quiet.pause()
    message_id = await say("my secret")
    keeper.start()
    assert await quiet.wait_idle(5)
    assert not await keeper.all_stored(0.05)
    await database.write(
        lambda conn: conn.execute(update(tables.messages).where(tables.messages.c.id == message_id).values(content="x"))
    )
    quiet.unpause()
    assert await keeper.all_stored(10)
    assert [row["user_message"] for row in memory.conversations.values()] == ["x"]
    await keeper.stop()
