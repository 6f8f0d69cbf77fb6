"""What happened in a turn is numbered, told once, and only to whom it belongs."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.errors import NotFound
from annabelle.core.messages import TurnEvent
from annabelle.store import threads
from annabelle.store.database import Database
from annabelle.store.threads import Thread
from support.timing import seconds


def event(key: str, message_id: str = "msg_1", **fields: object) -> TurnEvent:
    return TurnEvent.model_validate({"message_id": message_id, "key": key, "type": "text", **fields})


async def test_events_are_numbered_in_their_order(db: Database, thread: Thread) -> None:
    new = [event(f"0:0:{n}", step=1, attempt=2, data={"text": f"{n}"}) for n in range(120)]
    stored = await db.write(lambda c: threads.append_events(c, thread.id, new))
    assert [one.key for one in stored] == [one.key for one in new]
    numbers = [one.seq for one in stored]
    assert numbers == sorted(set(numbers))
    read = await db.read(lambda c: threads.list_events_after(c, thread.id, "owner"))
    assert read == stored
    assert read[0].data == {"text": "0"}
    assert (read[0].step, read[0].attempt, read[0].at) == (1, 2, new[0].at)


async def test_a_known_key_is_passed_over(db: Database, thread: Thread) -> None:
    first = await db.write(lambda c: threads.append_events(c, thread.id, [event("a"), event("b")]))
    again = await db.write(lambda c: threads.append_events(c, thread.id, [event("b"), event("c"), event("c")]))
    assert [one.key for one in first + again] == ["a", "b", "c"]
    other = await db.write(lambda c: threads.append_events(c, thread.id, [event("a", message_id="msg_2")]))
    assert len(other) == 1


async def test_a_reader_goes_on_where_it_stopped(db: Database, thread: Thread) -> None:
    stored = await db.write(lambda c: threads.append_events(c, thread.id, [event(f"{n}") for n in range(5)]))
    rest = await db.read(lambda c: threads.list_events_after(c, thread.id, "owner", stored[1].seq, 2))
    assert [one.key for one in rest] == ["2", "3"]
    assert await db.read(lambda c: threads.last_event_number(c, "owner")) == stored[-1].seq
    assert await db.read(lambda c: threads.last_event_number(c, "nobody")) == 0


@pytest.mark.incident("I-10")
async def test_events_of_someone_else_are_not_read(db: Database, thread: Thread) -> None:
    await db.write(lambda c: threads.append_events(c, thread.id, [event("a")]))
    for thread_id in (thread.id, None):
        assert await db.read(lambda c, t=thread_id: threads.list_events_after(c, t, "mallory")) == []
        assert len(await db.read(lambda c, t=thread_id: threads.list_events_after(c, t, "owner"))) == 1
    assert await db.read(lambda c: threads.list_message_events(c, "msg_1", "mallory")) == []
    assert len(await db.read(lambda c: threads.list_message_events(c, "msg_1", "owner"))) == 1


async def test_an_event_of_no_thread_is_refused(db: Database) -> None:
    with pytest.raises(NotFound):
        await db.write(lambda c: threads.append_events(c, "thr_none", [event("a")]))
    assert await db.write(lambda c: threads.append_events(c, "thr_none", [])) == []


async def test_a_reader_that_follows_many_writers_misses_nothing(db: Database, thread: Thread) -> None:
    """Numbers become visible in their order, also when several transactions are open at once."""
    seen: list[int] = []

    async def follow(count: int) -> None:
        last = 0
        while len(seen) < count:
            for one in await db.read(lambda c, after=last: threads.list_events_after(c, None, "owner", after)):
                last = one.seq
                seen.append(one.seq)

    async with asyncio.timeout(seconds(60)), asyncio.TaskGroup() as group:
        group.create_task(follow(60))
        for n in range(30):
            pair = [event(f"{n}:a"), event(f"{n}:b")]
            group.create_task(db.write(lambda c, pair=pair: threads.append_events(c, thread.id, pair)))
    assert seen == sorted(set(seen))
