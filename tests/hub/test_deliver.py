"""Delivery: one transaction, exactly one answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest
from sqlalchemy import Connection

from annabelle.core.contract import TurnResult
from annabelle.core.errors import ErrorBody, StorageTrouble
from annabelle.core.messages import OWNER, InboundMessage
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.hub.base import HubLifecycle, HubStorage
from annabelle.hub.conversations import message_workflow
from annabelle.hub.conversations.event_log import EventFanout, EventLog, WriteResult
from annabelle.hub.conversations.message_workflow import deliver
from annabelle.hub.conversations.turns import ActiveTurns, ReplyWaiters
from annabelle.store import claims, messages, threads, tool_calls
from annabelle.store.database import Database
from annabelle.store.messages import QueueLimits
from annabelle.store.tool_calls import NewToolCall

T = TypeVar("T")


@pytest.fixture
async def running(database: Database) -> str:
    """A message that was claimed."""
    inbound = InboundMessage(channel="api", chat_id="main", sender_id="me", text="hello")

    def enter(conn: Connection) -> str:
        thread = threads.find_or_create_thread(conn, channel="api", chat_id="main", user_id=OWNER, agent_id="annabelle")
        messages.queue_message(conn, thread, inbound, QueueLimits())
        return claims.claim_next_messages(conn, "hub", 8)[0].message_id

    return await database.write(enter)


async def types(database: Database, message_id: str) -> list[str]:
    return [
        event.type for event in await database.read(lambda conn: threads.list_message_events(conn, message_id, OWNER))
    ]


@pytest.mark.req("DUR-01", "DUR-02")
@pytest.mark.incident("I-20")
async def test_delivering_twice_gives_one_answer_and_frees_the_thread(database: Database, running: str) -> None:
    result = TurnResult(message_id=running, success=True, text="hi")
    first = await database.write(lambda conn: deliver(conn, running, result))
    again = await database.write(
        lambda conn: deliver(conn, running, TurnResult(message_id=running, success=True, text="other"))
    )
    assert first.result.reply is not None
    assert again.result.reply is not None
    assert again.result.reply.id == first.result.reply.id
    assert again.result.reply.content == "hi"
    assert list(again.events) == []
    assert await types(database, running) == ["message", "done"]
    assert first.result.message.state == "done"
    assert await database.read(lambda conn: claims.list_claims(conn, "hub")) == []


class RunTurn:
    """Stands for the durable engine: the turn is over, and this came of it."""

    def __init__(self, result: TurnResult) -> None:
        self._result = result

    async def step(self, name: str, fn: object) -> object:
        return self._result.model_dump(mode="json")


class FullTwice(EventLog):
    """Has no room for the first two tries."""

    tries = 0

    async def transact(self, change: Callable[[Connection], WriteResult[T]]) -> T:
        self.tries += 1
        if self.tries <= 2:
            raise StorageTrouble("The disk is full.")
        return await super().transact(change)


@pytest.mark.req("DUR-02")
async def test_a_delivery_is_tried_again_until_the_disk_takes_it(
    database: Database, running: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_workflow, "_DISK_CAP_SECONDS", 0.0)
    log, turn = FullTwice(database, EventFanout()), RunTurn(TurnResult(message_id=running, success=True, text="hi"))
    workflow = message_workflow.MessageWorkflow(
        base=SimpleNamespace(settings=Settings.model_validate({}), lifecycle=HubLifecycle()),
        storage=HubStorage(
            database=database,
            durable=turn,
            events=log,
            traces=TraceFile(tmp_path / "traces.jsonl", "hub", Redactor()),
        ),
        agents=None,
        turns=ActiveTurns(database),
        reply_waiters=ReplyWaiters(),
        toolbox=None,
    )  # type: ignore[arg-type]
    told: list[str] = []

    async def finished(message_id: str) -> None:
        told.append(message_id)

    await workflow.make_workflow(finished)({"message_id": running})
    assert (log.tries, told) == (3, [running])
    assert await types(database, running) == ["message", "done"]


@pytest.mark.req("RTR-07")
async def test_what_was_sent_by_tool_is_not_delivered_again(database: Database, running: str) -> None:
    def say(conn: Connection) -> None:
        thread_id = messages.load_message(conn, running).thread_id
        messages.add_agent_message(conn, thread_id, "sent before", f"{running}:1:0", reply_to=running)

    await database.write(say)
    result = TurnResult(message_id=running, success=True, text="sent before", sent_by_tool=True)
    delivered = await database.write(lambda conn: deliver(conn, running, result))
    assert delivered.result.reply is None
    assert await types(database, running) == ["done"]


@pytest.mark.req("RTR-07")
async def test_a_person_whose_answer_went_to_another_chat_is_told_so(database: Database, running: str) -> None:
    def say(conn: Connection) -> None:
        other = threads.find_or_create_thread(conn, channel="api", chat_id="other", user_id=OWNER, agent_id="annabelle")
        messages.add_agent_message(conn, other.id, "over there", f"{running}:1:0", reply_to=running)

    await database.write(say)
    result = TurnResult(message_id=running, success=True, text="over there", sent_by_tool=True)
    delivered = await database.write(lambda conn: deliver(conn, running, result))
    assert delivered.result.reply is not None
    assert delivered.result.reply.content == "I sent this to another chat: over there"


@pytest.mark.req("DUR-05")
@pytest.mark.parametrize(("code", "retryable"), [("provider_down", True), ("provider_refused", False)])
async def test_an_error_is_the_answer_and_says_whether_a_retry_can_help(
    database: Database, running: str, code: str, retryable: bool
) -> None:
    body = ErrorBody(code=code, message="It failed.", hint="Do this.")
    result = TurnResult(message_id=running, success=False, error=body)
    delivered = await database.write(lambda conn: deliver(conn, running, result))
    reply = delivered.result.reply
    assert reply is not None
    assert (reply.source, reply.content) == ("error", "It failed. Do this.")
    assert reply.metadata["retryable"] is retryable
    assert delivered.result.message.state == "failed"
    assert await types(database, running) == ["error", "done"]


@pytest.mark.req("DUR-03")
async def test_calls_of_unknown_outcome_are_told_to_the_person(database: Database, running: str) -> None:
    call_id = f"{running}:1:0"

    def doubt(conn: Connection) -> None:
        tool_calls.begin_call(conn, NewToolCall(call_id, "mail_send", "hash", OWNER, "annabelle", running))
        tool_calls.mark_call_unknown(conn, call_id, {"text": "unknown"})

    await database.write(doubt)
    await database.write(lambda conn: deliver(conn, running, TurnResult(message_id=running, success=True, text="hm")))
    told = await database.read(lambda conn: threads.list_message_events(conn, running, OWNER))
    assert [event.type for event in told] == ["notice", "message", "done"]
    assert call_id in str(told[0].data["text"])
