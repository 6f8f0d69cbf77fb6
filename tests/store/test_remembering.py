"""What the memory has to store, which threads rest, and what was seen in the last turns; on both engines."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, text

from annabelle.core.messages import now
from annabelle.store import memory_queue, messages, schema_migration, tool_calls
from annabelle.store.database import Database
from annabelle.store.migrations import FOLDER
from annabelle.store.schema_migration import MigrationPlan
from annabelle.store.tool_calls import NewToolCall, SeenToolResult

INSERT = (
    "INSERT INTO tool_calls (call_id, state, tool, arguments_hash, result, user_id, message_id, started_at) VALUES "
    "('a', 'finished', 'filer_read_file', 'h', '{\"text\":\"x\"}', 'owner', 'msg_1', '2026-01-01T00:00:00+00:00'),"
    "('b', 'finished', 'send_message', 'h', '{\"text\":\"x\"}', 'owner', 'msg_1', '2026-01-01T00:00:00+00:00'),"
    "('c', 'started', 'filer_read_file', 'h', NULL, 'owner', 'msg_1', '2026-01-01T00:00:00+00:00')"
)


@pytest.mark.req("MEM-01", "TRU-03")
async def test_a_database_of_the_first_version_keeps_its_rows_and_labels_what_came_back(
    empty_database_url: str,
) -> None:
    db = await Database.open(empty_database_url, plan=MigrationPlan(newest="0001", folder=FOLDER))
    assert await db.read(schema_migration.read_revision) == "0001"
    await db.write(lambda c: c.exec_driver_sql(INSERT))
    await db.close()
    db = await Database.open(empty_database_url)
    found = await db.read(lambda c: c.execute(text("SELECT call_id, trust FROM tool_calls ORDER BY 1")).all())
    assert found == [("a", "untrusted"), ("b", "trusted"), ("c", None)]
    assert await db.read(memory_queue.list_idle_threads) == []
    assert await db.read(lambda c: memory_queue.list_unstored_turns(c, 1)) == []
    await db.close()


@pytest.mark.req("MEM-12")
async def test_turns_wait_in_the_order_they_were_said_until_they_are_stored(db: Database, receive) -> None:
    first, second = (await receive("one")).message, (await receive("two")).message
    for message in (second, first, first):
        await db.write(lambda c, m=message: memory_queue.add_unstored_turn(c, m, "annabelle"))
    await db.write(lambda c: memory_queue.count_failed_try(c, first.id))
    waiting = await db.read(lambda c: memory_queue.list_unstored_turns(c, 10))
    assert [(row.message_id, row.agent_id, row.attempts) for row in waiting] == [
        (first.id, "annabelle", 1),
        (second.id, "annabelle", 0),
    ]
    assert await db.read(lambda c: memory_queue.has_unstored_turn(c, first.thread_id))
    for message in (first, second):
        await db.write(lambda c, m=message: memory_queue.remove_unstored_turn(c, m.id))
    assert not await db.read(lambda c: memory_queue.has_unstored_turn(c, first.thread_id))


@pytest.mark.req("MEM-07")
async def test_a_new_message_postpones_a_resting_thread_and_keeps_it_from_being_dropped(db: Database, receive) -> None:
    first, second = (await receive("one")).message, (await receive("two")).message
    later = now() + timedelta(seconds=300)
    await db.write(lambda c: memory_queue.put_idle_thread(c, first, "annabelle", now()))
    old = await db.read(lambda c: memory_queue.get_idle_thread(c, first.thread_id))
    await db.write(lambda c: memory_queue.put_idle_thread(c, second, "annabelle", later))
    assert old is not None
    await db.write(lambda c: memory_queue.remove_idle_thread(c, old))
    (kept,) = await db.read(memory_queue.list_idle_threads)
    assert (kept.last_message_id, kept.due_at) == (second.id, later)
    await db.write(lambda c: memory_queue.remove_idle_thread(c, kept))
    assert await db.read(memory_queue.list_idle_threads) == []


@pytest.mark.req("MEM-07")
async def test_a_thread_is_busy_while_a_message_waits_or_a_turn_is_not_stored(db: Database, receive) -> None:
    message = (await receive("one")).message

    async def busy() -> bool:
        return await db.read(lambda c: memory_queue.is_thread_busy(c, message.thread_id))

    assert await busy()
    await db.write(lambda c: messages.set_message_state(c, message.id, "done"))
    assert not await busy()
    await db.write(lambda c: memory_queue.add_unstored_turn(c, message, "annabelle"))
    assert await busy()


async def called(db: Database, message_id: str, tool: str, trust: str) -> None:
    def call(c: Connection) -> None:
        tool_calls.begin_call(c, NewToolCall(f"{message_id}:{tool}", tool, "hash", "owner", "annabelle", message_id))
        tool_calls.finish_call(c, f"{message_id}:{tool}", {"text": "x"}, trust)

    await db.write(call)


@pytest.mark.req("TRU-03")
async def test_untrusted_results_of_all_turns_of_a_thread_are_seen_and_those_of_later_turns_are_not(
    db: Database, receive
) -> None:
    old, middle, this, later = [(await receive(words)).message for words in ("a", "b", "c", "d")]
    await called(db, old.id, "web_old", "untrusted")
    await called(db, middle.id, "web_fetch", "untrusted")
    await called(db, this.id, "get_status", "trusted")
    await called(db, later.id, "web_later", "untrusted")
    elsewhere = (await receive("z", chat_id="another")).message
    await called(db, elsewhere.id, "web_elsewhere", "untrusted")
    seen = SeenToolResult("memory_retrieve_memories", "owner", "annabelle", this.id)
    for _ in range(2):
        await db.write(lambda c: tool_calls.note_untrusted(c, seen))
    assert await db.read(lambda c: tool_calls.list_untrusted_tools(c, this.id)) == [
        "memory_retrieve_memories",
        "web_fetch",
        "web_old",
    ]
    assert await db.read(lambda c: tool_calls.list_person_words(c, this.id, turns=2)) == ["c", "b"]
