"""What people and agents said is kept, once, and in order."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from annabelle.core.errors import Conflict, NotFound, TooManyRequests
from annabelle.core.messages import SKILLS, InboundMessage
from annabelle.store import claims, messages, threads
from annabelle.store.database import Database
from annabelle.store.messages import QueueLimits
from annabelle.store.tables import messages as table
from annabelle.store.threads import Thread


async def test_a_chat_has_one_thread_per_person_and_agent(db: Database) -> None:
    def find(user: str = "owner", agent: str = "annabelle") -> Thread:
        return lambda c: threads.find_or_create_thread(c, channel="cli", chat_id="c", user_id=user, agent_id=agent)

    first = await db.write(find())
    assert await db.write(find()) == first
    others = [await db.write(find(user="bob")), await db.write(find(agent="muse"))]
    assert len({first.id, *(other.id for other in others)}) == 3


async def test_the_first_messages_of_a_new_chat_at_once_make_one_thread(db: Database) -> None:
    def find(connection) -> Thread:
        return threads.find_or_create_thread(
            connection, channel="cli", chat_id="new", user_id="owner", agent_id="annabelle"
        )

    found = await asyncio.gather(*(db.write(find) for _ in range(10)))
    assert len({thread.id for thread in found}) == 1


@pytest.mark.req("CMD-01")
async def test_the_thread_that_takes_the_place_of_another_is_the_open_one(
    db: Database, thread: Thread, receive
) -> None:
    await receive("hello", external_id="u1")
    second = await db.write(lambda c: threads.replace_thread(c, thread.id))
    third = await db.write(lambda c: threads.replace_thread(c, second.id))
    assert (await db.write(lambda c: threads.replace_thread(c, thread.id))).id == third.id, "it was ended before"
    assert (await receive("again")).message.thread_id == third.id
    assert (await receive("hello", external_id="u1")).message.thread_id == thread.id, "it is known from before"
    ended = [one.ended_at is not None for one in await db.read(lambda c: threads.list_threads(c, "owner"))]
    assert sorted(ended) == [False, True, True]


@pytest.mark.incident("I-10")
async def test_a_thread_of_someone_else_is_not_found(db: Database, thread: Thread) -> None:
    assert (await db.read(lambda c: threads.get_thread(c, thread.id, "owner"))).id == thread.id
    with pytest.raises(NotFound):
        await db.read(lambda c: threads.get_thread(c, thread.id, "mallory"))
    assert await db.read(lambda c: threads.list_threads(c, "mallory")) == []


async def test_the_thread_used_last_is_listed_first(db: Database, receive) -> None:
    for chat in ("one", "two", "three", "one"):
        await receive("hello", chat_id=chat)
    listed = await db.read(lambda c: threads.list_threads(c, "owner"))
    assert [thread.chat_id for thread in listed[:3]] == ["one", "three", "two"]
    assert len(await db.read(lambda c: threads.list_threads(c, "owner", limit=2))) == 2


@pytest.mark.req("SES-05")
async def test_a_message_is_kept_with_id_chat_role_content_and_iso_time(db: Database, receive) -> None:
    sent = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    received = await receive("hello", sent_at=sent)
    row = await db.read(lambda c: c.execute(select(table)).mappings().one())
    assert (row["id"], row["chat_id"], row["role"], row["content"]) == (received.message.id, "main", "user", "hello")
    assert row["created_at"] == sent
    if db.dialect == "sqlite":
        stored = await db.read(lambda c: c.exec_driver_sql("SELECT created_at FROM messages").scalar())
        assert datetime.fromisoformat(stored) == sent


@pytest.mark.req("SES-05")
async def test_the_users_message_stays_when_the_model_fails(db: Database, thread: Thread, receive) -> None:
    asked = (await receive("hello")).message
    await db.write(lambda c: messages.set_message_state(c, asked.id, "failed"))
    reply = await db.write(lambda c: messages.add_reply(c, reply_to=asked.id, content="It failed.", source="error"))
    listed = await db.read(lambda c: messages.list_messages(c, thread.id, "owner"))
    assert [(m.role, m.content, m.state) for m in listed] == [
        ("user", "hello", "failed"),
        ("assistant", "It failed.", "done"),
    ]
    assert reply.source == "error"


@pytest.mark.incident("I-20")
async def test_a_message_that_comes_again_is_the_same_message(db: Database, receive) -> None:
    first = await receive("hello", external_id="42")
    again = await receive("hello", external_id="42")
    assert (first.duplicate, again.duplicate) == (False, True)
    assert again.message == first.message


@pytest.mark.incident("I-20")
async def test_twenty_deliveries_of_one_message_at_once_store_it_once(db: Database, thread: Thread, receive) -> None:
    received = await asyncio.gather(*(receive("hello", external_id="42") for _ in range(20)))
    assert sum(not one.duplicate for one in received) == 1
    assert len({one.message.id for one in received}) == 1
    assert len(await db.read(lambda c: messages.list_messages(c, thread.id, "owner"))) == 1


async def test_the_same_external_id_in_another_chat_or_of_another_person_is_another_message(receive) -> None:
    received = [
        await receive("a", external_id="1"),
        await receive("b", external_id="1", chat_id="other"),
        await receive("c", external_id="1", user_id="bob"),
        await receive("d"),
        await receive("e"),
    ]
    assert not any(one.duplicate for one in received)


async def test_a_message_posted_again_under_its_own_id_is_the_same(receive) -> None:
    first = await receive("hello", id="msg_1")
    assert (await receive("hello", id="msg_1")).message == first.message


@pytest.mark.incident("I-10")
async def test_an_id_of_someone_elses_message_is_refused_and_not_shown(receive) -> None:
    await receive("secret", id="msg_1")
    with pytest.raises(Conflict):
        await receive("mine", id="msg_1", user_id="mallory")


@pytest.mark.req("DUR-04")
async def test_a_full_thread_and_a_full_house_push_back(db: Database, receive) -> None:
    limits = QueueLimits(per_thread=2, total=3)
    await receive("1", limits=limits)
    await receive("2", limits=limits)
    with pytest.raises(TooManyRequests, match="2 messages already wait in this thread") as caught:
        await receive("3", limits=limits)
    assert caught.value.retry_after > 0
    await receive("1", chat_id="b", limits=limits)
    with pytest.raises(TooManyRequests, match="3 messages already wait in all threads"):
        await receive("1", chat_id="c", limits=limits)
    await db.write(lambda c: claims.claim_next_messages(c, "hub", 1))
    await receive("1", chat_id="c", limits=limits)  # what runs does not wait


@pytest.mark.req("DUR-04")
async def test_runs_of_skills_that_wait_push_no_person_back(db: Database, receive) -> None:
    limits = QueueLimits(total=1)

    def queue_runs(c) -> None:
        for chat in ("fire_1", "fire_2"):
            run = InboundMessage(channel=SKILLS, chat_id=chat, sender_id="owner", source="skill", text="Look.")
            thread = threads.find_or_create_thread(
                c, channel=SKILLS, chat_id=chat, user_id="owner", agent_id="annabelle"
            )
            messages.queue_message(c, thread, run, limits, background=True)

    await db.write(queue_runs)
    await receive("hello", limits=limits)


async def test_a_repeat_is_recognised_even_when_the_queue_is_full(receive) -> None:
    first = await receive("1", external_id="1", limits=QueueLimits(per_thread=1))
    assert (await receive("1", external_id="1", limits=QueueLimits(per_thread=1))).message == first.message


@pytest.mark.incident("I-20")
async def test_a_message_has_at_most_one_answer(db: Database, thread: Thread, receive) -> None:
    asked = (await receive("hello")).message
    replies = await asyncio.gather(
        *(db.write(lambda c, n=n: messages.add_reply(c, reply_to=asked.id, content=f"answer {n}")) for n in range(8))
    )
    assert len({reply.id for reply in replies}) == 1
    assert len(await db.read(lambda c: messages.list_messages(c, thread.id, "owner"))) == 2
    assert await db.read(lambda c: messages.find_answer(c, asked.id)) == replies[0]


async def test_what_an_agent_says_by_a_call_is_said_once_beside_the_answer(
    db: Database, thread: Thread, receive
) -> None:
    asked = (await receive("hello")).message
    said = [
        await db.write(lambda c: messages.add_agent_message(c, thread.id, "working on it", "call:1", reply_to=asked.id))
        for _ in range(2)
    ]
    assert said[0] == said[1]
    await db.write(lambda c: messages.add_reply(c, reply_to=asked.id, content="done"))
    listed = await db.read(lambda c: messages.list_messages(c, thread.id, "owner"))
    assert [message.content for message in listed] == ["hello", "working on it", "done"]
    assert listed[1].sender_id == "annabelle"


async def test_an_answer_to_nothing_is_not_possible(db: Database) -> None:
    with pytest.raises(NotFound):
        await db.write(lambda c: messages.add_reply(c, reply_to="msg_none", content="x"))


async def test_order_is_the_order_of_arrival_whatever_the_clock_says(db: Database, thread: Thread, receive) -> None:
    for day, text in ((3, "first"), (1, "second"), (2, "third")):
        await receive(text, sent_at=datetime(2026, 5, day, tzinfo=UTC))
    listed = await db.read(lambda c: messages.list_messages(c, thread.id, "owner"))
    assert [message.content for message in listed] == ["first", "second", "third"]
    rest = await db.read(lambda c: messages.list_messages(c, thread.id, "owner", after=listed[0].position, limit=1))
    assert rest == [listed[1]]


@pytest.mark.incident("I-10")
async def test_messages_of_someone_else_are_not_found(db: Database, thread: Thread, receive) -> None:
    asked = (await receive("hello")).message
    assert await db.read(lambda c: messages.get_message(c, asked.id, "owner")) == asked
    with pytest.raises(NotFound):
        await db.read(lambda c: messages.get_message(c, asked.id, "mallory"))
    assert await db.read(lambda c: messages.list_messages(c, thread.id, "mallory")) == []


async def test_a_finished_message_stays_as_it_ended(db: Database, receive) -> None:
    asked = (await receive("hello")).message
    assert await db.write(lambda c: messages.set_message_state(c, asked.id, "done"))
    assert not await db.write(lambda c: messages.set_message_state(c, asked.id, "running"))
    assert (await db.read(lambda c: messages.load_message(c, asked.id))).state == "done"


async def test_text_that_no_engine_can_hold_does_not_lose_the_message(db: Database, thread: Thread) -> None:
    message = InboundMessage.model_construct(
        id="msg_x", channel="cli", chat_id="main", sender_id="s", user_id="owner", text="a\x00b\ud800",
        external_id=None, sent_at=datetime(2026, 1, 1, tzinfo=UTC), agent_id=None,
    )  # fmt: skip
    stored = await db.write(lambda c: messages.queue_message(c, thread, message, QueueLimits()))
    assert stored.message.content == "a�b�"


async def test_the_replies_to_a_message_are_found_however_much_was_said_since(db: Database, receive) -> None:
    asked = (await receive("hello")).message

    def say(connection) -> list[str]:
        for number in range(300):
            messages.add_agent_message(connection, asked.thread_id, "…", f"call{number}")
        said = messages.add_agent_message(connection, asked.thread_id, "one", "call", reply_to=asked.id)
        answer = messages.add_reply(connection, reply_to=asked.id, content="two")
        return [said.id, answer.id]

    expected = await db.write(say)
    assert [reply.id for reply in await db.read(lambda c: messages.list_replies(c, asked))] == expected
