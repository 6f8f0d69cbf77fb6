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
from annabelle.hub.approvals.approval_store import park_turn, resume_if_answered
from annabelle.store import approvals, messages, threads
from annabelle.store.approvals import Approval, ApprovalBinding, ApprovalVerdict, NewApproval, OpenQuestionFilter
from annabelle.store.database import Database
from annabelle.store.messages import QueuedReceipt, StoredMessage

Receive = Callable[..., Awaitable[QueuedReceipt]]


def yes(message: StoredMessage, digest: str = "d1") -> ApprovalBinding:
    return ApprovalBinding(message.id, message.user_id, "annabelle", digest)


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
    return await db.write(lambda conn: approvals.add_approval(conn, new))


@pytest.mark.req("POL-03")
async def test_the_same_call_asks_once_and_is_answered_once(db: Database, receive: Receive) -> None:
    message = (await receive("post it")).message
    asked = await ask(db, message)
    assert (await ask(db, message)).id == asked.id
    assert (asked.state, asked.arguments, asked.reasons) == ("pending", {"to": "bob", "n": 0}, ["because"])
    verdicts = [ApprovalVerdict("approved", "owner"), ApprovalVerdict("denied", "owner", "no")]
    answers = await asyncio.gather(
        *(db.write(lambda conn, one=one: approvals.decide_approval(conn, asked.id, one)) for one in verdicts)
    )
    assert sorted(answers) == [False, True]
    with pytest.raises(NotFound):
        await db.read(lambda conn: approvals.get_approval(conn, asked.id, "ada"))


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-04")
async def test_a_yes_is_used_by_one_call_however_many_come_at_once(db: Database, receive: Receive) -> None:
    message = (await receive("post it")).message
    asked = await ask(db, message)
    await db.write(lambda conn: approvals.decide_approval(conn, asked.id, ApprovalVerdict("approved", "owner")))
    bound = yes(message, "d0")

    def use(call_id: str, by: ApprovalBinding = bound) -> Awaitable[str | None]:
        return db.write(lambda conn: approvals.use_approval(conn, by, call_id))

    for stranger in (
        yes(message, "d1"),
        ApprovalBinding("msg_other", "owner", "annabelle", "d0"),
        ApprovalBinding(message.id, "ada", "annabelle", "d0"),
        ApprovalBinding(message.id, "owner", "other", "d0"),
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
        turn = ParkedTurn(text="post both", pending=pending)
        park_turn(conn, messages.load_message(conn, message.id), turn, "cli")
        return None

    def answer(conn: Connection, approval_id: str) -> str | None:
        threads.touch_thread(conn, message.thread_id, now())
        approvals.decide_approval(conn, approval_id, ApprovalVerdict("approved", "owner"))
        going_on = resume_if_answered(conn, messages.load_message(conn, message.id))
        return None if going_on is None else going_on.id

    await asyncio.gather(db.write(end_turn), *(db.write(lambda conn, one=one: answer(conn, one.id)) for one in asked))
    listed = await db.read(lambda conn: messages.list_messages(conn, message.thread_id, "owner"))
    (going_on,) = [line for line in listed if line.source == "decision"]
    assert going_on.metadata == {"resumes": message.id, "root": message.id}
    assert going_on.content == "\n".join(["Approved: post_letter"] * 3)
    states = await db.read(lambda conn: [one.resumed_by for one in approvals.list_message_approvals(conn, message.id)])
    assert states == [going_on.id] * 3


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-28")
async def test_an_answer_after_its_time_is_none_also_before_the_question_was_ended(
    db: Database, receive: Receive
) -> None:
    late = await ask(db, (await receive("post it")).message, hours=-1)
    assert not await db.write(
        lambda conn: approvals.decide_approval(conn, late.id, ApprovalVerdict("approved", "owner"))
    )
    found = await db.read(lambda conn: approvals.get_approval(conn, late.id, "owner"))
    assert (found.state, found.decided_at, found.decided_by) == ("pending", None, None)


@pytest.mark.req("POL-03")
async def test_what_waits_is_found_by_where_it_was_asked_and_by_its_time(db: Database, receive: Receive) -> None:
    here, there = (await receive("a")).message, (await receive("b", chat_id="there")).message
    late = await ask(db, here, hours=-1)
    soon = await ask(db, there, hours=1)

    def look(conn: Connection) -> list[list[str]]:
        places = (
            OpenQuestionFilter(),
            OpenQuestionFilter(chat_id="there"),
            OpenQuestionFilter(thread_id=here.thread_id),
            OpenQuestionFilter(agent_id="other"),
        )
        return [approvals.list_waiting_messages(conn, where) for where in places]

    assert await db.read(look) == [[here.id, there.id], [there.id], [here.id], []]
    assert await db.read(lambda conn: approvals.list_expired_messages(conn, now())) == [here.id]
    assert await db.read(approvals.next_expiry) == late.expires_at
    await db.write(lambda conn: approvals.end_approvals(conn, [late.id], "expired"))
    assert await db.read(approvals.next_expiry) == soon.expires_at
    assert [one.id for one in await db.read(lambda conn: approvals.list_approvals(conn, "owner", "expired"))] == [
        late.id
    ]
    assert not await db.write(
        lambda conn: approvals.decide_approval(conn, late.id, ApprovalVerdict("approved", "owner"))
    )
