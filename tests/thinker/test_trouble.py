"""Turns on bad days: provider trouble, a hub that is away, a full disk, a person who says stop."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from annabelle.core.contract import TurnBrief
from annabelle.core.errors import (
    AgentPaused,
    AnnabelleError,
    HubUnreachable,
    ProviderDown,
    ProviderFailed,
    ProviderRateLimited,
    ProviderRefused,
    StorageTrouble,
    Unavailable,
)
from annabelle.core.messages import now
from annabelle.thinker.session.records import SessionTurn
from annabelle.thinker.session.session_store import SessionView
from annabelle.thinker.turn_registry import TurnRegistry
from support.timing import seconds
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.thinkers import brief


@pytest.mark.req("DUR-05", "LLM-09")
@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ProviderRateLimited("Slow down."), 8),
        (ProviderDown("No answer."), 6),
        (ProviderFailed("Odd."), 5),
        (ProviderRefused("The key is wrong."), 1),
        (AgentPaused("The cap is reached."), 1),
    ],
)
async def test_each_class_of_trouble_is_retried_as_often_as_it_deserves(
    tmp_path: Path, error: AnnabelleError, tries: int
) -> None:
    bench = Bench(tmp_path, ListedModel(error), DictTools(), wall_clock_seconds=100_000)
    result = await bench.run()
    assert len(bench.model.requests) == tries
    assert (result.success, result.error.code if result.error else None) == (False, error.code)
    assert bench.engine.waits[:2] == [1.5, 1.5][: max(0, tries - 1)]
    assert all(earlier < later for earlier, later in zip(bench.engine.waits[2:], bench.engine.waits[3:], strict=False))


@pytest.mark.req("DUR-05")
async def test_every_long_wait_is_explained_with_what_to_do_and_the_time_of_the_next_try(tmp_path: Path) -> None:
    trouble = ProviderRateLimited("Too many requests.", hint="Be patient.")
    bench = Bench(tmp_path, ListedModel(*[trouble] * 5, "here"), DictTools())
    assert (await bench.run()).text == "here"
    notices = [one for one in bench.facts("notice") if "text" in one["data"]]
    assert len(notices) == 3, "the first two tries come at once"
    assert "Too many requests. Be patient. The next try is in" in notices[0]["data"]["text"]


@pytest.mark.req("THR-05")
async def test_every_wait_for_the_model_is_told_with_what_a_countdown_needs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel(*[ProviderDown("No answer.")] * 3, "here"), DictTools())
    before = now()
    assert (await bench.run()).text == "here"
    told = [one["data"] for one in bench.facts("notice")]
    assert [(one["attempt"], one["attempts"]) for one in told] == [(2, 6), (3, 6), (4, 6)]
    assert [one["seconds"] for one in told] == [round(wait, 1) for wait in bench.engine.waits]
    for one in told:
        at = datetime.fromisoformat(one["retryAt"])
        assert at - before >= timedelta(seconds=one["seconds"] - 0.1), "the time of the next try, not of the last"
    assert ["text" in one for one in told] == [False, False, True], "only a long wait is worth a line"


@pytest.mark.req("THR-05")
async def test_a_turn_that_is_replayed_tells_each_wait_under_the_same_key(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel(*[ProviderDown("No answer.")] * 4, "here"), DictTools())
    await bench.run(message_id="msg_t")
    first = [one["key"] for one in bench.facts("notice")]
    bench.engine.rewind()
    await bench.run(message_id="msg_t")
    assert [one["key"] for one in bench.facts("notice")] == first
    assert len(set(first)) == 4


@pytest.mark.req("THR-05")
@pytest.mark.parametrize(("error", "tries"), [(ProviderDown("No answer."), 6), (ProviderRefused("Wrong key."), 1)])
async def test_the_error_that_ends_a_turn_says_how_often_it_was_tried(
    tmp_path: Path, error: AnnabelleError, tries: int
) -> None:
    result = await Bench(tmp_path, ListedModel(error), DictTools(), wall_clock_seconds=100_000).run()
    assert result.error is not None
    assert result.error.attempts == tries


@pytest.mark.req("DUR-05", "LLM-04")
async def test_every_new_try_has_a_higher_attempt_and_its_own_call_id(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel(ProviderDown("x"), ProviderDown("x"), "here"), DictTools())
    await bench.run(message_id="msg_t")
    assert [request.call_id for request in bench.model.requests] == ["msg_t:1:m100", "msg_t:1:m101", "msg_t:1:m102"]
    assert bench.facts("text")[0]["attempt"] == 102


@pytest.mark.req("SES-05")
async def test_the_users_message_is_remembered_even_when_the_model_fails(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel(ProviderRefused("Wrong key."), "Yes."), DictTools())
    assert not (await bench.run("my name is Ada")).success
    turn = (await bench.sessions.turns("thr_one"))[0]
    assert (turn.user, turn.assistant, turn.error and turn.error.code) == ("my name is Ada", "", "provider_refused")
    await bench.run("do you know my name?")
    assert "my name is Ada" in str(bench.sent())
    assert "Wrong key" not in str(bench.sent())


@pytest.mark.parametrize("said", ["", " \n", "\u200b\u2060 \ufeff"])
async def test_an_empty_answer_is_tried_again_and_then_an_error(tmp_path: Path, said: str) -> None:
    bench = Bench(tmp_path, ListedModel(said), DictTools())
    result = await bench.run()
    assert result.error is not None
    assert "empty answer" in result.error.message
    assert len(bench.model.requests) == 5


async def test_an_empty_answer_after_tools_claims_no_more_than_they_did(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel([("write", {})], ""), DictTools(write=lambda a: "written"))
    result = await bench.run()
    assert result.success
    assert "write" in result.text


@pytest.mark.req("SKL-03")
async def test_an_empty_answer_stays_empty_where_there_may_be_nothing_to_tell(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel([("look", {})], ""), DictTools(look=lambda a: "nothing"))
    result = await bench.run(may_be_silent=True)
    assert (result.success, result.text) == (True, "")


@pytest.mark.req("THK-06")
async def test_a_ledger_that_is_away_is_waited_for_and_the_user_is_told_once(tmp_path: Path) -> None:
    away = HubUnreachable("The ledger did not answer.")
    bench = Bench(tmp_path, ListedModel(*[away] * 12, "back"), DictTools())
    assert (await bench.run()).text == "back"
    assert len(bench.engine.waits) == 12
    assert len(bench.facts("notice")) == 1


@pytest.mark.req("THK-06")
async def test_a_hub_that_stays_away_ends_the_turn_when_its_time_is_over(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel(HubUnreachable("Gone.")), DictTools(), wall_clock_seconds=60)
    result = await bench.run()
    assert result.error is not None
    assert result.error.code == "hub_unreachable"


class FullDisk:
    def __init__(self, works_after: int) -> None:
        self.tries, self._works_after = 0, works_after

    async def load(self, brief: TurnBrief) -> SessionView:
        return SessionView([])

    async def turns(self, thread_id: str) -> list[SessionTurn]:
        return []

    async def append(self, thread_id: str, record: SessionTurn) -> None:
        self.tries += 1
        if self.tries <= self._works_after:
            raise StorageTrouble("The disk is full.", hint="Free some space.")

    async def open(self) -> None: ...

    def answered(self, thread_id: str, archive_as: str | None = None) -> None: ...

    async def clear(self, thread_id: str) -> None: ...

    async def close(self) -> None: ...


@pytest.mark.req("SES-01")
async def test_a_full_disk_costs_the_memory_of_the_turn_but_not_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annabelle.thinker.turn._SESSION_WAIT_SECONDS", 0)
    bench = Bench(tmp_path, ListedModel("The answer."), DictTools())
    disk = FullDisk(works_after=99)
    object.__setattr__(bench.parts, "sessions", disk)
    result = await bench.run()
    assert result.success
    assert result.text.startswith("The answer.")
    assert "could not be remembered: The disk is full. Free some space." in result.text
    assert disk.tries == 3


@pytest.mark.req("SES-01")
async def test_a_disk_that_has_room_again_in_a_moment_is_no_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annabelle.thinker.turn._SESSION_WAIT_SECONDS", 0)
    bench = Bench(tmp_path, ListedModel("The answer."), DictTools())
    object.__setattr__(bench.parts, "sessions", FullDisk(works_after=2))
    assert (await bench.run()).text == "The answer."


@pytest.mark.incident("I-27")
async def test_a_stop_ends_a_running_model_call_and_the_history_stays_valid(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def never() -> str:
        asked.set()
        await asyncio.sleep(60)
        return "late"

    bench = Bench(tmp_path, ListedModel([("look", {})], lambda r: never()), DictTools(look=lambda a: "seen"))
    turn = asyncio.create_task(bench.run("go"))
    await asyncio.wait_for(asked.wait(), seconds(5))
    bench.live.cancel()
    result = await asyncio.wait_for(turn, seconds(1))
    assert result.error is not None
    assert result.error.code == "cancelled"
    bench.model._replies = ["fine"]
    assert (await bench.run("and now?")).text == "fine"
    assert "seen" in str(bench.sent())


@pytest.mark.incident("I-27")
@pytest.mark.req("DUR-03")
async def test_a_stop_in_the_middle_of_two_calls_leaves_none_without_a_result(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def slow(arguments: dict[str, object]) -> str:
        begun.set()
        await asyncio.sleep(60)
        return "late"

    tools = DictTools(slow=slow, write=lambda a: "written")
    bench = Bench(tmp_path, ListedModel([("write", {}), ("slow", {}), ("write", {"n": 2})], "fine"), tools)
    turn = asyncio.create_task(bench.run("go"))
    await asyncio.wait_for(begun.wait(), seconds(5))
    bench.live.cancel()
    result = await asyncio.wait_for(turn, seconds(1))
    assert not result.success
    assert result.unknown_outcomes == (tools.calls[1].call_id,)
    assert [call.name for call in tools.calls] == ["write", "slow"]
    record = (await bench.sessions.turns("thr_one"))[0]
    parts = cast("list[dict[str, str]]", record.messages[2]["parts"])
    assert [part["outcome"] for part in parts] == ["success", "interrupted", "interrupted"]
    assert parts[1]["content"].startswith("OUTCOME UNKNOWN")
    assert parts[2]["content"].startswith("NOT DONE")


@pytest.mark.incident("I-27")
async def test_a_stop_ends_the_wait_for_the_next_try(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel(ProviderDown("x")), DictTools())
    await bench.engine.signal("any", "cancel")
    result = await bench.run()
    assert result.error is not None
    assert result.error.code == "cancelled"
    assert len(bench.model.requests) == 1


@pytest.mark.req("DUR-02")
@pytest.mark.parametrize("trouble", [StorageTrouble("The disk failed."), Unavailable("The database is away.")])
async def test_a_record_that_can_not_be_read_is_no_end_of_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: AnnabelleError
) -> None:
    bench = Bench(tmp_path, ListedModel("here"), DictTools())
    turns = TurnRegistry(bench.parts)

    async def unreadable(_workflow_id: str) -> None:
        raise trouble

    monkeypatch.setattr(bench.engine, "finished", unreadable)
    asked = brief("hello")
    with pytest.raises(type(trouble)):
        await turns.accept(asked)
    with pytest.raises(type(trouble)):
        await turns.state(asked.message_id, 0)
    monkeypatch.undo()
    assert (await turns.accept(asked)).state == "running"
