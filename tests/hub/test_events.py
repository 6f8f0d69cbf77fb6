"""The event log and its readers: written first, told in order, nothing lost or doubled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import pytest
from sqlalchemy import Connection

from annabelle.core.errors import StorageTrouble
from annabelle.core.messages import OWNER, TurnEvent
from annabelle.hub.conversations.event_log import (
    EventFanout,
    EventListener,
    EventLog,
    EventReader,
    LiveEvent,
    WriteResult,
    follow_events,
    stream_events,
)
from annabelle.store import threads, threads as stored
from annabelle.store.database import Database
from support.timing import seconds


@pytest.fixture
def fanout() -> EventFanout:
    return EventFanout()


@pytest.fixture
def log(database: Database, fanout: EventFanout) -> EventLog:
    return EventLog(database, fanout)


async def thread_of(database: Database, user_id: str, chat_id: str = "main") -> str:
    made = await database.write(
        lambda conn: threads.find_or_create_thread(
            conn, channel="api", chat_id=chat_id, user_id=user_id, agent_id="annabelle"
        )
    )
    return made.id


def event(key: str, message_id: str = "msg_1") -> TurnEvent:
    return TurnEvent(message_id=message_id, key=key, type="text", data={"text": f"line\n{key}"})


async def read(lines: AsyncIterator[bytes], count: int) -> list[tuple[int, str]]:
    """The next events of a stream: their numbers and keys."""
    found: list[tuple[int, str]] = []
    async with asyncio.timeout(seconds(10)):
        while len(found) < count:
            text = (await anext(lines)).decode()
            if text.startswith("id: "):
                number, _, data = text.rstrip("\n").split("\n")
                found.append((int(number.removeprefix("id: ")), json.loads(data.removeprefix("data: "))["key"]))
    return found


async def test_events_are_stored_in_order_and_a_known_key_is_passed_over(database: Database, log: EventLog) -> None:
    thread = await thread_of(database, OWNER)
    for number in range(50):
        log.add(thread, OWNER, event(f"k{number}"))
    await log.add(thread, OWNER, event("k7"))
    kept = await database.read(lambda conn: stored.list_message_events(conn, "msg_1", OWNER))
    assert [one.key for one in kept] == [f"k{number}" for number in range(50)]


@pytest.mark.req("THR-04")
async def test_a_reader_gets_what_it_missed_and_then_what_happens(
    database: Database, fanout: EventFanout, log: EventLog
) -> None:
    thread = await thread_of(database, OWNER)
    for number in range(5):
        await log.add(thread, OWNER, event(f"old{number}"))
    lines = stream_events(EventReader(OWNER, thread, 2), database, fanout)
    assert [key for _, key in await read(lines, 3)] == ["old2", "old3", "old4"]
    for number in range(3):
        await log.add(thread, OWNER, event(f"new{number}"))
    assert [key for _, key in await read(lines, 3)] == ["new0", "new1", "new2"]
    await lines.aclose()


@pytest.mark.req("THR-04")
async def test_what_happens_while_a_reader_catches_up_comes_once(
    database: Database, fanout: EventFanout, log: EventLog
) -> None:
    thread = await thread_of(database, OWNER)
    lines = stream_events(EventReader(OWNER, thread, 0), database, fanout)
    assert (await anext(lines)).startswith(b"retry")
    await log.add(thread, OWNER, event("both in the store and live"))
    assert [key for _, key in await read(lines, 1)] == ["both in the store and live"]
    await log.add(thread, OWNER, event("next"))
    assert [key for _, key in await read(lines, 1)] == ["next"]
    await lines.aclose()


@pytest.mark.req("THR-04")
async def test_a_reader_that_comes_back_anywhere_loses_and_doubles_nothing(
    database: Database, fanout: EventFanout, log: EventLog
) -> None:
    thread = await thread_of(database, OWNER)
    seen: list[tuple[int, str]] = []

    async def write() -> None:
        for number in range(300):
            log.add(thread, OWNER, event(f"k{number}"))
            if number % 7 == 0:
                await asyncio.sleep(0)

    writing = asyncio.create_task(write())
    while len(seen) < 300:
        lines = stream_events(EventReader(OWNER, thread, seen[-1][0] if seen else 0), database, fanout)
        seen += await read(lines, min(13, 300 - len(seen)))
        await lines.aclose()
    await writing
    assert [key for _, key in seen] == [f"k{number}" for number in range(300)]


@pytest.mark.req("THR-04")
async def test_a_reader_whose_number_is_from_before_a_restore_hears_what_happens_now(
    database: Database, fanout: EventFanout, log: EventLog
) -> None:
    thread = await thread_of(database, OWNER)
    await log.add(thread, OWNER, event("before"))
    lines = stream_events(EventReader(OWNER, thread, 500), database, fanout)
    assert await anext(lines) == b"retry: 1000\nid: 1\n\n"
    await log.add(thread, OWNER, event("now"))
    assert [key for _, key in await read(lines, 1)] == ["now"]
    await lines.aclose()


@pytest.mark.req("THR-04")
async def test_a_slow_reader_blocks_nobody_and_reads_on_from_the_store(
    database: Database, fanout: EventFanout, log: EventLog
) -> None:
    thread = await thread_of(database, OWNER)
    lines = stream_events(EventReader(OWNER, thread, 0), database, fanout)
    assert (await anext(lines)).startswith(b"retry")
    for number in range(2500):
        last = log.add(thread, OWNER, event(f"k{number}"))
    await last
    for number in range(2500, 2600):
        await log.add(thread, OWNER, event(f"k{number}"))
    assert [key for _, key in await read(lines, 2600)] == [f"k{number}" for number in range(2600)]
    await lines.aclose()


@pytest.mark.req("THR-04")
async def test_what_happens_while_a_slow_reader_reads_the_store_is_not_lost(
    database: Database, fanout: EventFanout, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = await thread_of(database, OWNER)
    lines = stream_events(EventReader(OWNER, thread, 0), database, fanout, heartbeat=0.05)
    assert (await anext(lines)).startswith(b"retry")
    for number in range(1200):
        last = log.add(thread, OWNER, event(f"k{number}"))
    await last
    original, meanwhile = database.read, [f"m{page}" for page in range(4)]
    to_add = list(meanwhile)

    async def read_and_add(change: Callable[[Connection], object]) -> object:
        found = await original(change)
        if to_add:
            await log.add(thread, OWNER, event(to_add.pop(0)))
        return found

    monkeypatch.setattr(database, "read", read_and_add)
    seen: list[str] = []
    async with asyncio.timeout(seconds(10)):
        while (line := await anext(lines)) != b": still here\n\n":
            seen.append(json.loads(line.partition(b"data: ")[2])["key"])
    assert seen == [f"k{number}" for number in range(1200)] + meanwhile
    await lines.aclose()


def test_a_full_listener_lets_its_queue_go_and_says_so() -> None:
    listener = EventListener(OWNER, None, limit=3)
    for number in range(4):
        listener.push(LiveEvent(number, b""))
    assert listener.fell_behind
    assert listener.drain() == []


@pytest.mark.req("THR-04")
@pytest.mark.incident("I-10")
async def test_a_reader_sees_its_own_user_s_events_only(database: Database, fanout: EventFanout, log: EventLog) -> None:
    mine, other = await thread_of(database, OWNER), await thread_of(database, "someone")
    lines = stream_events(EventReader(OWNER, None, 0), database, fanout)
    theirs = stream_events(EventReader(OWNER, other, 0), database, fanout, heartbeat=0.05)
    await log.add(other, "someone", event("secret", "msg_2"))
    await log.add(mine, OWNER, event("mine"))
    assert [key for _, key in await read(lines, 1)] == ["mine"]
    await log.add(other, "someone", event("secret2", "msg_2"))
    await log.add(mine, OWNER, event("mine2"))
    assert [key for _, key in await read(lines, 1)] == ["mine2"]
    assert [await anext(theirs) for _ in range(3)][1:] == [b": still here\n\n"] * 2
    await lines.aclose()
    await theirs.aclose()


@pytest.mark.incident("I-10")
@pytest.mark.parametrize("stream", [stream_events, follow_events])
async def test_a_revoked_token_is_told_nothing_more_of_what_it_had_missed_either(
    database: Database, fanout: EventFanout, log: EventLog, stream: Callable[..., AsyncGenerator[object]]
) -> None:
    thread = await thread_of(database, OWNER)
    for number in range(4):
        await log.add(thread, OWNER, event(f"k{number}"))
    streams = [stream(EventReader(OWNER, thread, 0, token), database, fanout) for token in ("revoked", "kept")]
    for one in streams:
        await anext(one)
        await anext(one)
    fanout.close_for_token("revoked")
    assert [told async for told in streams[0]] == []
    assert await anext(streams[1])
    await streams[1].aclose()


@pytest.mark.req("THR-04")
async def test_a_silent_stream_has_a_heartbeat_and_ends_with_the_hub(database: Database, fanout: EventFanout) -> None:
    lines = stream_events(EventReader(OWNER, None, 0), database, fanout, heartbeat=0.05)
    assert [await anext(lines) for _ in range(2)] == [b"retry: 1000\nid: 0\n\n", b": still here\n\n"]
    fanout.close()
    assert [line async for line in lines] == []


async def test_a_transaction_s_events_are_told_after_it_is_committed(
    database: Database, fanout: EventFanout, log: EventLog
) -> None:
    thread = await thread_of(database, OWNER)
    listener = fanout.listen(OWNER)
    given = await log.transact(lambda conn: WriteResult(7, OWNER, stored.append_events(conn, thread, [event("k")])))
    assert given == 7
    assert len(listener.drain()) == 1


async def test_whoever_waits_for_events_learns_that_they_could_not_be_written(
    database: Database, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = await thread_of(database, OWNER)

    async def full(_change: object) -> object:
        raise StorageTrouble("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(database, "write", full)
        waiting = log.add(thread, OWNER, event("k"))
        with pytest.raises(StorageTrouble):
            await waiting
    await log.add(thread, OWNER, event("k"))
    assert len(await database.read(lambda conn: stored.list_message_events(conn, "msg_1", OWNER))) == 1


async def test_a_mistake_in_one_batch_does_not_keep_the_next_from_being_written(
    database: Database, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, write = await thread_of(database, OWNER), database.write
    waiting: list[asyncio.Future[None]] = []

    async def broken(_change: object) -> object:
        monkeypatch.setattr(database, "write", write)
        waiting.append(log.add(thread, OWNER, event("next")))
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(database, "write", broken)
    with pytest.raises(ValueError, match="mistake"):
        await log.add(thread, OWNER, event("k"))
    async with asyncio.timeout(seconds(10)):
        await waiting[0]
        await log.add(thread, OWNER, event("last"))
    kept = await database.read(lambda conn: stored.list_message_events(conn, "msg_1", OWNER))
    assert [one.key for one in kept] == ["next", "last"]
