"""One turn at a time per thread, however many ask."""

from __future__ import annotations

import asyncio
import random

import pytest

from annabelle.store import claims, messages
from annabelle.store.database import Database
from support.timing import seconds


async def claim(db: Database, owner: str = "hub", max_running: int = 10, thread_id: str | None = None) -> list[str]:
    taken = await db.write(lambda c: claims.claim_next_messages(c, owner, max_running, thread_id))
    return [one.message.content for one in taken]


@pytest.mark.req("DUR-04")
async def test_the_oldest_message_of_each_idle_thread_is_taken(db: Database, receive) -> None:
    for chat, text in (("a", "a1"), ("a", "a2"), ("b", "b1")):
        await receive(text, chat_id=chat)
    assert await claim(db) == ["a1", "b1"]
    assert await claim(db) == []  # both threads are busy


@pytest.mark.req("DUR-04")
async def test_a_released_thread_goes_on_with_its_next_message(db: Database, receive) -> None:
    first = (await receive("1")).message
    await receive("2")
    await claim(db)
    assert await db.write(lambda c: claims.release_claim(c, first.id))
    assert not await db.write(lambda c: claims.release_claim(c, first.id))
    assert await claim(db) == ["2"]


@pytest.mark.req("DUR-04")
async def test_an_owner_runs_no_more_than_its_bound(db: Database, receive) -> None:
    for chat in "abcd":
        await receive(chat, chat_id=chat)
    assert await claim(db, max_running=3) == ["a", "b", "c"]
    assert await claim(db, max_running=3) == []
    assert await claim(db, "other", max_running=3) == ["d"]


@pytest.mark.req("AGE-06")
async def test_the_locks_of_an_agent_are_its_own_and_the_oldest_comes_first(db: Database, receive) -> None:
    begun: dict[str, list[str]] = {"annabelle": [], "muse": []}
    for chat, agent_id in (("a", "annabelle"), ("b", "muse"), ("c", "annabelle")):
        begun[agent_id].append((await receive(chat, chat_id=chat, agent_id=agent_id)).message.id)
        await claim(db)
    for agent_id, ids in begun.items():
        held = await db.read(lambda c, agent_id=agent_id: claims.list_agent_claims(c, agent_id))
        assert [one.message_id for one in held] == ids


async def test_a_claim_can_be_asked_for_one_thread_alone(db: Database, receive) -> None:
    await receive("a", chat_id="a")
    wanted = (await receive("b", chat_id="b")).message
    assert await claim(db, thread_id=wanted.thread_id) == ["b"]


async def test_a_claimed_message_runs_and_a_restarted_owner_finds_it(db: Database, receive) -> None:
    asked = (await receive("hello")).message
    await claim(db)
    assert (await db.read(lambda c: messages.load_message(c, asked.id))).state == "running"
    held = await db.read(lambda c: claims.list_claims(c, "hub"))
    assert [(one.message_id, one.thread_id, one.message.content) for one in held] == [
        (asked.id, asked.thread_id, "hello")
    ]
    assert await db.read(lambda c: claims.list_claims(c, "other")) == []


@pytest.mark.req("DUR-04")
async def test_owners_racing_on_one_database_never_share_a_thread(db: Database, receive) -> None:
    chats, length = 6, 8
    await asyncio.gather(*(receive(f"{n}", chat_id=f"c{n % chats}") for n in range(chats * length)))
    order: dict[str, list[int]] = {}
    busy: set[str] = set()

    async def work(owner: str) -> None:
        chance = random.Random(owner)
        while sum(map(len, order.values())) < chats * length:
            for one in await db.write(lambda c: claims.claim_next_messages(c, owner, 3)):
                assert one.thread_id not in busy, "two owners work on one thread"
                busy.add(one.thread_id)
                for _ in range(chance.randrange(3)):
                    await asyncio.sleep(0)
                order.setdefault(one.thread_id, []).append(one.message.position)
                busy.remove(one.thread_id)

                def done(c, message_id: str = one.message_id) -> None:
                    messages.set_message_state(c, message_id, "done")
                    claims.release_claim(c, message_id)

                await db.write(done)

    async with asyncio.timeout(seconds(60)):
        await asyncio.gather(*(work(f"hub{n}") for n in range(4)))
    assert len(order) == chats
    for positions in order.values():
        assert positions == sorted(positions)
        assert len(set(positions)) == length
