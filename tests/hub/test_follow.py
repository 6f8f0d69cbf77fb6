"""Following a turn at a thinker that dies, refuses or never gets on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from annabelle.core.contract import StreamedEvent, TurnAccepted, TurnBrief, TurnResult, TurnState
from annabelle.core.errors import ErrorBody
from annabelle.core.events import TurnEvent
from annabelle.hub.agents.client import ThinkerClient, ThinkerGone, ThinkerRefused
from annabelle.hub.agents.process import ThinkerFailed
from annabelle.hub.agents.restarts import Restarts
from annabelle.hub.agents.runner import AgentRunner
from annabelle.hub.events.log import EventLog
from annabelle.hub.flows.follow import Follower

BRIEF = TurnBrief(
    message_id="msg_1", thread_id="thr_1", trace_id="tr_1", channel="api", chat_id="main", sender_id="me", text="hello"
)
Life = Callable[[int], AsyncIterator[StreamedEvent]]


def event(life: int, n: int, key: str) -> StreamedEvent:
    made = TurnEvent(message_id="msg_1", key=key, type="tool_complete")
    return StreamedEvent(stream=f"s{life}", n=n, event=made)


@dataclass
class FakeLog:
    """Remembers what was written, as the real log would."""

    keys: list[str] = field(default_factory=list[str])
    crowded: bool = False

    def add(self, _thread: str, _user: str, event: TurnEvent) -> asyncio.Future[None]:
        self.keys.append(event.key)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


class FakeRunner:
    """A runner whose every life tells what it is given, and then dies, until `ends_after` lives are over."""

    agent_id = "annabelle"

    def __init__(self, tell: Callable[[int], list[StreamedEvent]], ends_after: int) -> None:
        self.restarts, self.lives = Restarts(0), 0
        self._tell, self._ends_after = tell, ends_after
        self.refusal: Exception | None = None

    async def ensure(self) -> ThinkerClient:
        self.lives += 1
        if self.refusal is not None:
            raise self.refusal
        return cast("ThinkerClient", self)

    async def unanswered(self, _client: object) -> None: ...

    async def begin(self, _brief: TurnBrief) -> TurnAccepted:
        return TurnAccepted(message_id="msg_1", state="running")

    async def events(self, _brief: TurnBrief, _after: int, _stream: str | None) -> AsyncIterator[StreamedEvent]:
        for told in self._tell(self.lives):
            yield told
        if self.lives < self._ends_after:
            raise ThinkerGone("dead")

    async def state(self, _message_id: str) -> TurnState:
        return TurnState(
            message_id="msg_1", state="done", result=TurnResult(message_id="msg_1", success=True, text="done")
        )


def follower(runner: FakeRunner, log: FakeLog) -> Follower:
    return Follower(BRIEF, cast("AgentRunner", runner), cast("EventLog", log), lambda: False)


@pytest.mark.req("DUR-01", "AGT-06")
async def test_a_turn_that_gets_on_is_followed_through_any_number_of_deaths() -> None:
    runner = FakeRunner(lambda life: [event(life, n, f"step{n}") for n in range(1, life + 1)], ends_after=60)
    log = FakeLog()
    result = await follower(runner, log).follow()
    assert result.success
    assert runner.lives == 60
    assert set(log.keys) == {f"step{n}" for n in range(1, 61)}


@pytest.mark.req("AGT-06")
async def test_a_turn_that_kills_its_thinker_again_and_again_ends_in_an_error() -> None:
    runner = FakeRunner(lambda life: [event(life, 1, "step1")], ends_after=1000)
    result = await follower(runner, FakeLog()).follow()
    assert not result.success
    assert result.error is not None
    assert "again and again" in result.error.message
    assert runner.lives < 30


@pytest.mark.parametrize(
    ("refusal", "lives"),
    [
        (ThinkerFailed(ErrorBody(code="bad_config", message="A setting is wrong."), 2), 1),
        (ThinkerFailed(ErrorBody(code="agent_failed", message="A setting is wrong."), 1), 4),
        (ThinkerRefused("A setting is wrong."), 4),
    ],
)
async def test_a_thinker_that_will_not_start_is_not_tried_for_ever(refusal: Exception, lives: int) -> None:
    runner = FakeRunner(lambda _: [], ends_after=0)
    runner.refusal = refusal
    result = await follower(runner, FakeLog()).follow()
    assert result.error is not None
    assert result.error.message == "A setting is wrong."
    assert runner.lives == lives
