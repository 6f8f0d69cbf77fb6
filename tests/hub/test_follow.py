"""Following a turn at a thinker that dies, refuses or never gets on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from annabelle.core.contract import StreamedEvent, TurnAccepted, TurnBrief, TurnResult, TurnState
from annabelle.core.errors import StorageTrouble
from annabelle.core.messages import TurnEvent
from annabelle.hub.agents import thinker_calls
from annabelle.hub.agents.client import ThinkerClient, ThinkerGone, ThinkerRefused
from annabelle.hub.agents.process import ThinkerFailed
from annabelle.hub.agents.runner import AgentRestartBackoff, AgentRunner
from annabelle.hub.agents.thinker_calls import TurnFollower
from annabelle.hub.conversations.event_log import EventLog

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
    lose: set[str] = field(default_factory=set[str])

    def add(self, _thread: str, _user: str, event: TurnEvent) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if event.key in self.lose:
            self.lose.discard(event.key)
            done.set_exception(StorageTrouble("The disk is full."))
            done.exception()
        else:
            self.keys.append(event.key)
            done.set_result(None)
        return done


class FakeRunner:
    """A runner whose every life tells what it is given, and then dies, until `ends_after` lives are over."""

    agent_id = "annabelle"

    def __init__(self, tell: Callable[[int], list[StreamedEvent]], ends_after: int) -> None:
        self.restarts, self.lives = AgentRestartBackoff(0), 0
        self._tell, self._ends_after = tell, ends_after
        self.refusal: Exception | None = None
        self.knows_the_turn = True
        self.given_up: list[str] = []

    async def ensure(self) -> ThinkerClient:
        self.lives += 1
        if self.refusal is not None:
            raise self.refusal
        return cast("ThinkerClient", self)

    async def unanswered(self, _client: object) -> None: ...

    async def give_up(self, message_id: str) -> None:
        self.given_up.append(message_id)

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

    async def cancel(self, _message_id: str) -> None:
        if not self.knows_the_turn:
            raise ThinkerRefused("There is no turn msg_1.")


def follower(runner: FakeRunner, log: FakeLog, *, cancelled: bool = False) -> TurnFollower:
    return TurnFollower(BRIEF, cast("AgentRunner", runner), cast("EventLog", log), lambda: cancelled)


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
    assert runner.given_up == ["msg_1"], "the next process would resume it"


@pytest.mark.parametrize(
    ("refusal", "lives"),
    [
        (ThinkerFailed("A setting is wrong.", exit_code=2), 1),
        (ThinkerFailed("A setting is wrong.", exit_code=1), 4),
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


@pytest.mark.req("THR-04")
async def test_events_that_were_not_written_are_read_again_also_when_later_ones_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thinker_calls, "_DISK_PAUSE_SECONDS", 0)
    runner = FakeRunner(lambda life: [event(life, n, f"step{n}") for n in (1, 2, 3)], ends_after=0)
    log = FakeLog(lose={"step1"})
    result = await follower(runner, log).follow()
    assert result.success
    assert set(log.keys) == {"step1", "step2", "step3"}


@pytest.mark.parametrize(("known", "code"), [(False, "cancelled"), (True, None)])
async def test_a_turn_that_was_stopped_before_it_was_followed_ends_by_what_its_thinker_says(
    known: bool, code: str | None
) -> None:
    """After a crash of the hub the thinker may have taken the turn up already: its end is the turn's end."""
    runner = FakeRunner(lambda _: [], ends_after=0)
    runner.knows_the_turn = known
    result = await follower(runner, FakeLog(), cancelled=True).follow()
    assert (result.error.code if result.error is not None else None) == code
