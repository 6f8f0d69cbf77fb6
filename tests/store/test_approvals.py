"""Questions in the store, on both engines: asked once, answered once, used once, also when everybody comes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from annabelle.core.contract import ParkedCall, ParkedTurn
from annabelle.core.errors import NotFound
from annabelle.core.messages import now
from annabelle.hub.approvals.parking import carry_on, park
from annabelle.store import approvals, messages, open_questions, threads
from annabelle.store.approvals import Approval, NewApproval, Verdict, Yes
from annabelle.store.database import Database
from annabelle.store.messages import Received, StoredMessage
from annabelle.store.open_questions import Where

Receive = Callable[..., Awaitable[Received]]


def yes(message: StoredMessage, digest: str = "d1") -> Yes:
    return Yes(message.id, message.user_id, "annabelle", digest)


async def ask(db: Database, message: StoredMessage, number: int = 0, hours: float = 24) -> Approval:
    new = NewApproval(
        bound=yes(message, f"d{number}"),
        thread_id=message.thread_id,
        message_id=message.id,
        call_id=f"{message.id}:1:{number}",
        tool="post_letter",
        arguments={"to": "bob", "n": number},
        reasons=("because",),
        expires_at=now() + timedelta(hours=hours),
    )
    return await db.write(lambda conn: approvals.ask(conn, new))


@pytest.mark.req("POL-03")
async def test_the_same_call_asks_once_and_is_answered_once(db: Database, receive: Receive) -> None:
    message = (await receive("post it")).message
    asked = await ask(db, message)
    assert (await ask(db, message)).id == asked.id
    assert (asked.state, asked.arguments, asked.reasons) == ("pending", {"to": "bob", "n": 0}, ["because"])
    verdicts = [Verdict("approved", "owner"), Verdict("denied", "owner", "no")]
    answers = await asyncio.gather(
        *(db.write(lambda conn, one=one: approvals.decide(conn, asked.id, one)) for one in verdicts)
    )
    assert sorted(answers) == [False, True]
    with pytest.raises(NotFound):
        await db.read(lambda conn: approvals.get(conn, asked.id, "ada"))


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-04")
async def test_a_yes_is_used_by_one_call_however_many_come_at_once(db: Database, receive: Receive) -> None:
    message = (await receive("post it")).message
    asked = await ask(db, message)
    await db.write(lambda conn: approvals.decide(conn, asked.id, Verdict("approved", "owner")))
    bound = yes(message, "d0")

    def use(call_id: str, by: Yes = bound) -> Awaitable[str | None]:
        return db.write(lambda conn: approvals.use(conn, by, call_id))

    for stranger in (
        yes(message, "d1"),
        Yes("msg_other", "owner", "annabelle", "d0"),
        Yes(message.id, "ada", "annabelle", "d0"),
        Yes(message.id, "owner", "other", "d0"),
    ):
        assert await use("c0", stranger) is None
    used = await asyncio.gather(*(use(f"c{number}") for number in range(5)))
    assert sorted(one is not None for one in used) == [False] * 4 + [True]
    winner = next(f"c{number}" for number, one in enumerate(used) if one is not None)
    assert await use(winner) == asked.id, "the same call again, after a crash, still has its yes"


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-28")
async def test_answers_that_come_at_once_carry_the_turn_on_once(db: Database, receive: Receive) -> None:
    message = (await receive("post both")).message
    asked = [await ask(db, message, number) for number in range(3)]
    pending = tuple(ParkedCall(model_id=one.id, name="post_letter", arguments={}, approval_id=one.id) for one in asked)

    def end_turn(conn: Connection) -> str | None:
        park(conn, messages.load(conn, message.id), ParkedTurn(text="post both", pending=pending))
        return None

    def answer(conn: Connection, approval_id: str) -> str | None:
        threads.touch(conn, message.thread_id, now())
        approvals.decide(conn, approval_id, Verdict("approved", "owner"))
        going_on = carry_on(conn, messages.load(conn, message.id))
        return None if going_on is None else going_on.id

    await asyncio.gather(db.write(end_turn), *(db.write(lambda conn, one=one: answer(conn, one.id)) for one in asked))
    listed = await db.read(lambda conn: messages.listing(conn, message.thread_id, "owner"))
    (going_on,) = [line for line in listed if line.source == "decision"]
    assert going_on.metadata == {"resumes": message.id, "root": message.id}
    assert going_on.content == "\n".join(["Approved: post_letter"] * 3)
    states = await db.read(lambda conn: [one.resumed_by for one in approvals.of_message(conn, message.id)])
    assert states == [going_on.id] * 3


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-28")
async def test_an_answer_after_its_time_is_none_also_before_the_question_was_ended(
    db: Database, receive: Receive
) -> None:
    late = await ask(db, (await receive("post it")).message, hours=-1)
    assert not await db.write(lambda conn: approvals.decide(conn, late.id, Verdict("approved", "owner")))
    found = await db.read(lambda conn: approvals.get(conn, late.id, "owner"))
    assert (found.state, found.decided_at, found.decided_by) == ("pending", None, None)


@pytest.mark.req("POL-03")
async def test_what_waits_is_found_by_where_it_was_asked_and_by_its_time(db: Database, receive: Receive) -> None:
    here, there = (await receive("a")).message, (await receive("b", chat_id="there")).message
    late = await ask(db, here, hours=-1)
    soon = await ask(db, there, hours=1)

    def look(conn: Connection) -> list[list[str]]:
        places = (Where(), Where(chat_id="there"), Where(thread_id=here.thread_id), Where(agent_id="other"))
        return [open_questions.asking(conn, where) for where in places]

    assert await db.read(look) == [[here.id, there.id], [there.id], [here.id], []]
    assert await db.read(lambda conn: open_questions.due(conn, now())) == [here.id]
    assert await db.read(open_questions.next_expiry) == late.expires_at
    await db.write(lambda conn: approvals.end(conn, [late.id], "expired"))
    assert await db.read(open_questions.next_expiry) == soon.expires_at
    assert [one.id for one in await db.read(lambda conn: approvals.listing(conn, "owner", "expired"))] == [late.id]
    assert not await db.write(lambda conn: approvals.decide(conn, late.id, Verdict("approved", "owner")))
