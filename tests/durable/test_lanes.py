"""One turn at a time per thread, many threads at once, never more than the bound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from annabelle.core.errors import StorageTrouble, TooManyRequests, Unavailable
from annabelle.core.messages import InboundMessage, now
from annabelle.core.tools import JsonObject
from annabelle.durable import thread_queue
from annabelle.durable.engine import Durable
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.store import claims, messages, threads
from annabelle.store.database import Database
from annabelle.store.messages import QueueLimits
from support.timing import seconds
from support.virtual_clock import VirtualClock


class House:
    """Chats, lanes and a workflow that answers when it is let go."""

    def __init__(self, db: Database, durable: Durable, max_running: int = 3) -> None:
        self.db, self.durable = db, durable
        self.running: dict[str, str] = {}
        self.most = 0
        self.order: list[str] = []
        self.clock = VirtualClock(now())
        self.gates: dict[str, asyncio.Event] = {}
        self.let_all_go = True
        self.together = False
        self.full = asyncio.Event()
        self.bound = max_running
        self.refuse = 0
        durable.workflow("turn")(self._turn)
        self.lanes = ThreadQueue(db, durable, self.clock, "hub", max_running, self._start)

    async def _start(self, message_id: str) -> None:
        if self.refuse:
            self.refuse -= 1
            raise Unavailable("not now")
        await self.durable.start("turn", message_id, {"message_id": message_id})

    async def _turn(self, argument: JsonObject) -> JsonObject:
        message_id = str(argument["message_id"])
        message = await self.db.read(lambda c: messages.load_message(c, message_id))
        assert message.thread_id not in self.running.values(), "two turns in one thread"
        self.running[message_id] = message.thread_id
        self.most = max(self.most, len(self.running))
        self.order.append(message.content)
        if len(self.running) == self.bound:
            self.full.set()
        if self.together:
            await asyncio.wait_for(self.full.wait(), seconds(10))
        if not self.let_all_go:
            await self.gates.setdefault(message.content, asyncio.Event()).wait()
        del self.running[message_id]

        async def finish() -> object:
            await self.db.write(lambda c: messages.set_message_state(c, message_id, "done"))
            return None

        await self.durable.step("finish", finish)
        await self.lanes.finish_message(message_id)
        return {}

    async def send(self, chat: str, text: str, limits: QueueLimits | None = None) -> str:
        message = InboundMessage(channel="test", chat_id=chat, sender_id="s", text=text)

        def receive(c) -> messages.StoredMessage:
            thread = threads.find_or_create_thread(c, channel="test", chat_id=chat, user_id="owner", agent_id="a")
            return messages.queue_message(c, thread, message, limits or QueueLimits()).message

        stored = await self.db.write(receive)
        await self.lanes.start_next(stored.thread_id)
        return stored.id

    async def all_done(self, count: int) -> None:
        def done(c) -> int:
            return c.exec_driver_sql("SELECT count(*) FROM messages WHERE state = 'done'").scalar_one()

        def held(c) -> int:
            return len(claims.list_claims(c, "hub"))

        async with asyncio.timeout(seconds(30)):
            while await self.db.read(done) < count or await self.db.read(held):  # noqa: ASYNC110  it is in the database
                await asyncio.sleep(0.01)

    async def begun(self, text: str) -> None:
        async with asyncio.timeout(seconds(10)):
            while text not in self.order:  # noqa: ASYNC110  one turn of the loop
                await asyncio.sleep(0.005)


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def house(db: Database, make_durable) -> AsyncIterator[House]:
    durable = make_durable()
    made = House(db, durable)
    await durable.launch()
    yield made
    await durable.close()


@pytest.mark.req("DUR-04")
async def test_an_idle_thread_begins_at_once_and_a_busy_one_queues(house: House) -> None:
    house.let_all_go = False
    first = await house.send("a", "1")
    second = await house.send("a", "2")
    await house.begun("1")
    assert (await house.db.read(lambda c: messages.load_message(c, first))).state == "running"
    assert (await house.db.read(lambda c: messages.load_message(c, second))).state == "queued"
    house.let_all_go = True
    house.gates["1"].set()
    await house.all_done(2)
    assert house.order == ["1", "2"]


@pytest.mark.req("DUR-04")
async def test_many_threads_run_at_once_up_to_the_bound_and_each_keeps_its_order(house: House) -> None:
    house.together = True  # the first turns end only when as many run as may

    async def talk(chat: int) -> None:
        for number in range(6):
            await house.send(f"c{chat}", f"c{chat}:{number}")

    await asyncio.gather(*(talk(chat) for chat in range(6)))
    await house.all_done(36)
    assert len(house.order) == 36
    assert house.most == 3
    for chat in range(6):
        mine = [text for text in house.order if text.startswith(f"c{chat}:")]
        assert mine == [f"c{chat}:{number}" for number in range(6)]


@pytest.mark.req("DUR-04")
async def test_a_full_queue_pushes_back_and_what_was_taken_is_answered(house: House) -> None:
    house.let_all_go = False
    limits = QueueLimits(per_thread=2)
    await house.send("a", "1", limits)
    await house.begun("1")
    await house.send("a", "2", limits)
    await house.send("a", "3", limits)
    with pytest.raises(TooManyRequests):
        await house.send("a", "4", limits)
    house.let_all_go = True
    house.gates["1"].set()
    await house.all_done(3)
    assert house.order == ["1", "2", "3"]


@pytest.mark.req("DUR-01")
async def test_a_start_that_failed_is_tried_again_when_no_other_message_comes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_queue, "RETRY_SECONDS", 0.01)
    house.refuse = 3
    await house.send("a", "1")
    await house.all_done(1)
    assert house.order == ["1"]


@pytest.mark.req("DUR-01")
async def test_a_message_that_could_not_be_claimed_is_taken_up_when_the_disk_has_room(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_queue, "RETRY_SECONDS", 0.01)
    claim_next, refused = claims.claim_next_messages, iter(range(3))

    def full(*arguments, **named) -> list[claims.ClaimedMessage]:
        if next(refused, None) is not None:
            raise StorageTrouble("The disk is full.")
        return claim_next(*arguments, **named)

    monkeypatch.setattr(claims, "claim_next_messages", full)
    await house.send("a", "1")
    await house.all_done(1)
    assert house.order == ["1"]


@pytest.mark.req("DUR-04")
async def test_a_claim_that_could_not_be_released_does_not_block_its_thread(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_queue, "RETRY_SECONDS", 0.01)
    release, refused = claims.release_claim, iter(range(3))

    def full(*arguments) -> bool:
        if next(refused, None) is not None:
            raise StorageTrouble("The disk is full.")
        return release(*arguments)

    monkeypatch.setattr(claims, "release_claim", full)
    await house.send("a", "1")
    await house.send("a", "2")
    await house.all_done(2)
    assert house.order == ["1", "2"]


async def test_a_start_that_failed_is_made_up_for_by_the_next_that_moves(house: House) -> None:
    house.refuse = 1
    await house.send("a", "1")
    assert house.order == []
    await house.send("b", "2")
    await house.all_done(2)
    assert sorted(house.order) == ["1", "2"]


@pytest.mark.req("DUR-02", "DUR-04")
async def test_a_restart_takes_up_what_was_claimed_and_what_waited(db: Database, make_durable) -> None:
    durable = make_durable()
    house = House(db, durable, max_running=2)
    house.let_all_go = False
    await durable.launch()
    for chat in "abc":
        for number in range(2):
            await house.send(chat, f"{chat}{number}")
    await house.begun("b0")
    await durable.close()
    again = make_durable()
    after = House(db, again, max_running=2)
    await again.launch()
    await after.lanes.recover()
    await after.all_done(6)
    assert sorted(after.order) == ["a0", "a1", "b0", "b1", "c0", "c1"]
    for chat in "abc":
        assert after.order.index(f"{chat}0") < after.order.index(f"{chat}1")


@pytest.mark.req("AGE-06", "AGE-10")
async def test_a_turn_has_been_under_way_since_the_clock_said_so(house: House) -> None:
    """Else a turn that begins on a day of a virtual clock would have hung for as many days."""
    house.clock.moment = moment = now() + timedelta(days=3)
    house.let_all_go = False
    await house.send("a", "running")
    await house.begun("running")
    held = await house.db.read(lambda c: claims.list_held_claims(c, moment + timedelta(seconds=1)))
    assert [one.claimed_at for one in held] == [moment]
    house.gates["running"].set()


@pytest.mark.req("DUR-04")
async def test_a_claim_whose_workflow_has_ended_does_not_block_its_thread(house: House) -> None:
    """As after a kill between the end of a workflow and the release of its claim."""
    message = InboundMessage(channel="test", chat_id="a", sender_id="s", text="1")

    def claim_only(c) -> str:
        thread = threads.find_or_create_thread(c, channel="test", chat_id="a", user_id="owner", agent_id="a")
        messages.queue_message(c, thread, message, QueueLimits())
        claims.claim_next_messages(c, "hub", 3)
        return thread.id

    thread_id = await house.db.write(claim_only)
    await house.durable.start("turn", message.id, {"message_id": message.id})
    await house.durable.result(message.id, 10)
    again = message.model_copy(update={"id": "msg_next", "text": "2"})

    def stuck(c) -> None:
        messages.queue_message(c, threads.load_thread(c, thread_id), again, QueueLimits())
        c.exec_driver_sql("DELETE FROM claims")
        c.exec_driver_sql(
            f"INSERT INTO claims (thread_id, message_id, owner, claimed_at) "
            f"VALUES ('{thread_id}', '{message.id}', 'hub', '2026-01-01T00:00:00+00:00')"
        )

    await house.db.write(stuck)
    await house.lanes.recover()
    await house.all_done(2)
    assert house.order == ["1", "2"]


@pytest.mark.req("TRU-09")
async def test_while_it_is_held_nothing_begins_and_nothing_is_lost(house: House) -> None:
    house.let_all_go = False
    await house.send("a", "running")
    await house.begun("running")
    house.lanes.pause()
    waiting = [await house.send(chat, f"{chat} waits") for chat in ("a", "b")]
    house.let_all_go = True
    house.gates["running"].set()
    await house.all_done(1)
    states = [(await house.db.read(lambda c, one=one: messages.load_message(c, one))).state for one in waiting]
    assert states == ["queued", "queued"]
    assert house.order == ["running"]
    await house.lanes.unpause()
    await house.all_done(3)
    assert sorted(house.order) == ["a waits", "b waits", "running"]
