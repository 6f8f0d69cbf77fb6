"""On whose behalf a tool is called: facts the hub knows, never what a caller says."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from annabelle.core.errors import NotAllowed
from annabelle.core.messages import OWNER, InboundMessage
from annabelle.core.tools import CallContext
from annabelle.hub.conversations.turns import ActiveTurns
from annabelle.store import claims, messages, threads
from annabelle.store.database import Database
from annabelle.store.messages import QueueLimits


async def enter(database: Database, claim: bool) -> str:
    inbound = InboundMessage(channel="telegram", chat_id="42", sender_id="me", text="hello")

    def store(conn: Connection) -> str:
        thread = threads.find_or_create_thread(
            conn, channel="telegram", chat_id="42", user_id=OWNER, agent_id="annabelle"
        )
        messages.queue_message(conn, thread, inbound, QueueLimits())
        if claim:
            claims.claim_next_messages(conn, "hub", 8)
        return inbound.id

    return await database.write(store)


def context(message_id: str, agent_id: str) -> CallContext:
    return CallContext(caller="agent", agent_id=agent_id, user_id=OWNER, message_id=message_id)


@pytest.mark.incident("I-10")
async def test_an_agent_acts_for_its_own_running_turns_only(database: Database) -> None:
    turns = ActiveTurns(database)
    with turns.open(context("msg_1", "annabelle")):
        assert (await turns.context("msg_1", "annabelle")).user_id == OWNER
        with pytest.raises(NotAllowed):
            await turns.context("msg_1", "another")
    with pytest.raises(NotAllowed):
        await turns.context("msg_1", "annabelle")


@pytest.mark.incident("I-10")
async def test_after_a_crash_a_turn_is_known_by_its_stored_message_while_it_is_claimed(database: Database) -> None:
    turns = ActiveTurns(database)
    running = await enter(database, claim=True)
    found = await turns.context(running, "annabelle")
    assert (found.channel, found.chat_id, found.user_id) == ("telegram", "42", OWNER)
    with pytest.raises(NotAllowed):
        await turns.context(running, "another")
    await database.write(lambda conn: messages.set_message_state(conn, running, "done"))
    with pytest.raises(NotAllowed):
        await turns.context(running, "annabelle")
    with pytest.raises(NotAllowed):
        await turns.context(await enter(database, claim=False), "annabelle")


async def test_a_stop_waits_for_work_but_not_for_ever(database: Database) -> None:
    turns = ActiveTurns(database)
    assert await turns.wait_all_over(0)
    with turns.busy():
        assert turns.running == 1
        assert not await turns.wait_all_over(0.01)
    assert await turns.wait_all_over(0)


async def test_a_stop_counts_also_when_its_turn_has_not_begun(database: Database) -> None:
    turns = ActiveTurns(database)
    turns.cancel("msg_1")
    with turns.open(context("msg_1", "annabelle")):
        assert turns.cancelled("msg_1")
    assert not turns.cancelled("msg_1")
