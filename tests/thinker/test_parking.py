"""A turn whose calls need a yes ends with the question, and keeps all it needs to go on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart

from annabelle.core.errors import StorageTrouble
from annabelle.core.tools import ToolResult
from support.timing import seconds
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.questions import Person, parked, resumed
from thinker.test_context_repair import assert_valid

SEND: tuple[str, Any] = ("send", {"to": "anna"})


@pytest.mark.req("POL-03", "POL-07")
async def test_a_call_that_waits_ends_the_turn_with_the_question_and_costs_no_further_model_call(
    tmp_path: Path,
) -> None:
    person = Person()
    model = ListedModel([SEND], "Done! I have sent the mail.")
    bench = Bench(tmp_path, model, DictTools(send=person.asks("send")))
    result = await bench.run("Send Anna a mail")
    waiting = parked(result)
    assert result.text == "May I call send with {'to': 'anna'}?"
    assert (waiting.text, waiting.answered, len(model.requests), person.done) == ("Send Anna a mail", None, 1, [])
    (call,) = waiting.pending
    assert (call.name, call.arguments, call.approval_id) == ("send", {"to": "anna"}, "apr_0")
    assert (result.limit, result.tools_used, result.unknown_outcomes) == (None, (), ())
    (ended,) = bench.facts("tool_complete")
    assert (ended["data"]["status"], ended["data"]["approval_id"]) == ("waiting", "apr_0")


@pytest.mark.req("POL-03")
async def test_calls_behind_a_waiting_one_are_not_made_and_those_before_it_keep_their_results(tmp_path: Path) -> None:
    person = Person()
    tools = DictTools(note=lambda a: "noted", send=person.asks("send"), erase=lambda a: "erased")
    bench = Bench(tmp_path, ListedModel([("note", {}), SEND, ("erase", {"path": "x"}), ("note", {})]), tools)
    waiting = parked(await bench.run())
    assert [call.name for call in tools.calls] == ["note", "send"]
    assert [(call.name, call.approval_id) for call in waiting.pending] == [
        ("send", "apr_0"), ("erase", None), ("note", None),
    ]  # fmt: skip
    assert "noted" in str(waiting.answered)
    assert waiting.progress["tool_calls"] == 1


@pytest.mark.req("POL-03", "LOOP-01")
async def test_of_calls_made_at_the_same_time_some_may_wait_while_others_are_answered(tmp_path: Path) -> None:
    person = Person()
    tools = DictTools(read_only=("look", "fetch"), look=lambda a: "seen", fetch=person.asks("fetch"))
    calls: list[tuple[str, Any]] = [("fetch", {"url": "a"}), ("look", {}), ("fetch", {"url": "b"})]
    result = await Bench(tmp_path, ListedModel(calls), tools).run()
    assert [call.approval_id for call in parked(result).pending] == ["apr_0", "apr_1"]
    assert result.text.count("May I call fetch") == 2
    assert "seen" in str(parked(result).answered)


@pytest.mark.req("POL-03")
async def test_a_call_without_readable_arguments_never_waits_to_be_made_without_any(tmp_path: Path) -> None:
    person = Person()
    tools = DictTools(send=person.asks("send"), erase=lambda a: "erased everything")
    model = ListedModel([SEND, ("erase", "{not json")], "ok")
    bench = Bench(tmp_path, model, tools)
    first = await bench.run()
    assert [call.name for call in parked(first).pending] == ["send"]
    await resumed(bench, "msg_root", first, person.yes("apr_0"))
    assert [call.name for call in tools.calls] == ["send", "send"]
    assert "not a JSON object" in str(bench.sent())


@pytest.mark.req("POL-03", "SES-01")
async def test_later_turns_are_told_that_it_waits_in_a_conversation_every_provider_takes(tmp_path: Path) -> None:
    person = Person()
    model = ListedModel([("note", {}), SEND, ("note", {})], "It is Monday.")
    bench = Bench(tmp_path, model, DictTools(note=lambda a: "noted", send=person.asks("send")))
    asked = await bench.run("Send Anna a mail")
    later = await bench.run("What day is it?")
    assert (later.text, later.parked) == ("It is Monday.", None)
    history = bench.sent()[1:-1]
    assert_valid(history)
    assert str(history).count("WAITS: not done yet") == 2
    last = history[-1]
    assert isinstance(last, ModelResponse)
    assert [part.content for part in last.parts if isinstance(part, TextPart)] == [asked.text]


@pytest.mark.req("POL-03", "LOOP-02")
async def test_what_a_limit_left_over_waits_too_and_meets_the_limit_when_the_turn_goes_on(tmp_path: Path) -> None:
    person = Person()
    tools = DictTools(note=lambda a: "noted", send=person.asks("send"))
    bench = Bench(tmp_path, ListedModel([("note", {}), SEND, ("note", {"n": 2})]), tools, max_tool_calls=2)
    first = await bench.run()
    assert [call.name for call in parked(first).pending] == ["send", "note"]
    second = await resumed(bench, "msg_root", first, person.yes("apr_0"))
    assert second.limit == "max_tool_calls"
    assert [call.name for call in tools.calls] == ["note", "send", "send"]


@pytest.mark.req("POL-03")
async def test_a_session_that_can_not_be_written_loses_neither_the_question_nor_the_parked_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person()
    bench = Bench(tmp_path, ListedModel([SEND]), DictTools(send=person.asks("send")))

    async def full(thread_id: str, record: object) -> None:
        raise StorageTrouble("The disk is full.")

    monkeypatch.setattr(bench.sessions, "append", full)
    monkeypatch.setattr("annabelle.thinker.turn._SESSION_WAIT_SECONDS", 0)
    result = await bench.run()
    assert parked(result).pending[0].approval_id == "apr_0"
    assert result.text.startswith("May I call send")
    assert "The disk is full." in result.text


@pytest.mark.req("POL-03", "LOOP-06")
async def test_a_message_that_waits_for_a_yes_is_not_taken_for_sent(tmp_path: Path) -> None:
    question = ToolResult(text="May I write to another chat?", approval_id="apr_0")
    calls: list[tuple[str, Any]] = [("send_message", {"text": "Hello"})]
    result = await Bench(tmp_path, ListedModel(calls), DictTools(send_message=lambda a: question)).run()
    assert (result.sent_by_tool, result.text) == (False, "May I write to another chat?")
    assert parked(result).pending[0].name == "send_message"


@pytest.mark.req("POL-03", "DUR-02")
async def test_a_replay_after_a_crash_parks_the_same_turn_and_asks_nobody_twice(tmp_path: Path) -> None:
    person = Person()
    model = ListedModel([("note", {})], [SEND, ("note", {})], "never said")
    tools = DictTools(note=lambda a: "noted", send=person.asks("send"))
    bench = Bench(tmp_path, model, tools)
    first = await bench.run()
    again = await bench.run(message_id=first.message_id)
    assert (again.text, parked(again).pending) == (first.text, parked(first).pending)
    assert parked(again).progress == parked(first).progress
    assert [call.name for call in tools.calls] == ["note", "send"]


@pytest.mark.req("LOOP-09", "POL-03")
async def test_a_stop_beside_a_call_that_waits_leaves_nothing_unknown_about_it(tmp_path: Path) -> None:
    both_begun = asyncio.Barrier(2)
    person = Person()
    ask = person.asks("fetch")

    async def fetch(arguments: dict[str, Any]) -> Any:
        await both_begun.wait()
        return ask(arguments)

    async def hang(arguments: dict[str, Any]) -> str:
        await both_begun.wait()
        # The other one has its question by now: it needs fewer turns of the event loop than this.
        for _ in range(50):
            await asyncio.sleep(0)
        bench.live.cancel()
        await asyncio.Event().wait()
        return "never"

    tools = DictTools(read_only=("fetch", "look"), fetch=fetch, look=hang)
    calls: list[tuple[str, Any]] = [("fetch", {"url": "a"}), ("look", {})]
    bench = Bench(tmp_path, ListedModel(calls, "ok"), tools)
    async with asyncio.timeout(seconds(10)):
        result = await bench.run("Look at both")
    assert [fact["data"]["status"] for fact in bench.facts("tool_complete")] == ["waiting"]
    assert (result.success, result.parked) == (False, None)
    assert result.unknown_outcomes == (f"{result.message_id}:1:1",)
    await bench.run("And now?")
    assert_valid(bench.sent()[1:-1])
