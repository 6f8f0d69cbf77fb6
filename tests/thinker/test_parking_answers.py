"""A parked turn goes on with the person's answer: the calls that waited first, and then as if nothing had been."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart

from annabelle.core.contract import AnsweredApproval, TurnLimits
from annabelle.core.errors import InvalidArguments
from annabelle.thinker.selection.selection import SelectionRequest, ToolSelection
from annabelle.thinker.session.records import SessionTurn
from support.timing import seconds
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.questions import Person, parked, resumed
from thinker.test_context_repair import assert_valid

SEND: tuple[str, Any] = ("send", {"to": "anna"})
ROOT = "msg_root"


def results_in(messages: list[ModelMessage]) -> list[str]:
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def said_in(messages: list[ModelMessage]) -> str:
    parts = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return "\n".join(str(part.content) for part in parts)


async def records(bench: Bench) -> list[SessionTurn]:
    return await bench.sessions.turns("thr_one")


@pytest.mark.req("POL-03", "LOOP-01")
async def test_after_a_yes_the_call_is_made_first_under_a_new_id_and_the_loop_goes_on(tmp_path: Path) -> None:
    person = Person()
    tools = DictTools(note=lambda a: "noted", send=person.asks("send"))
    model = ListedModel([("note", {"text": "x"})], [SEND, ("note", {"text": "y"})], "Sent, and noted.")
    bench = Bench(tmp_path, model, tools)
    first = await bench.run("Send Anna a mail", message_id=ROOT)
    second = await resumed(bench, ROOT, first, person.yes("apr_0"))
    assert (second.text, second.parked, second.tools_used) == ("Sent, and noted.", None, ("note", "send"))
    assert person.done == [SEND]
    made = tools.calls[2:]
    assert [(call.name, call.arguments) for call in made] == [SEND, ("note", {"text": "y"})]
    assert [call.call_id for call in made] == [f"{second.message_id}:2:0", f"{second.message_id}:2:1"]
    assert {call.message_id for call in made} == {second.message_id}
    sent = bench.sent()[1:]
    assert results_in(sent) == ["noted", "did send", "noted"]
    assert said_in(sent).count("Send Anna a mail") == 1
    assert "WAITS" not in str(sent)
    assert second.steps == 3


@pytest.mark.req("POL-03")
async def test_the_arguments_a_person_changed_are_the_ones_that_are_used_and_the_ones_the_model_reads(
    tmp_path: Path,
) -> None:
    person = Person()
    bench = Bench(tmp_path, ListedModel([SEND], "Sent."), DictTools(send=person.asks("send")))
    first = await bench.run(message_id=ROOT)
    await resumed(bench, ROOT, first, person.yes("apr_0", {"to": "annika"}, note="she married"))
    assert person.done == [("send", {"to": "annika"})]
    parts = [part for message in bench.sent() if isinstance(message, ModelResponse) for part in message.parts]
    assert [part.args for part in parts if isinstance(part, ToolCallPart)] == [{"to": "annika"}]
    (result,) = results_in(bench.sent())
    assert "The user changed the arguments" in result
    assert "she married" in result


@pytest.mark.req("POL-03", "TRU-04")
@pytest.mark.incident("I-24")
async def test_after_a_no_nothing_is_called_and_nobody_may_claim_it_was_done(tmp_path: Path) -> None:
    person = Person()
    tools = DictTools(send=person.asks("send"), erase=lambda a: "erased")
    model = ListedModel([SEND, ("erase", {"id": "the original"})], "I've sent the mail to Anna.")
    bench = Bench(tmp_path, model, tools)
    first = await bench.run("Send Anna a mail", message_id=ROOT)
    second = await resumed(bench, ROOT, first, person.no("apr_0", note="not today"))
    assert [call.name for call in tools.calls] == ["send"]
    refused, behind = results_in(bench.sent())
    assert "The user said no and added: not today" in refused
    assert "came after a call that the user did not say yes to" in behind
    assert "no message was sent" in second.text
    statuses = [fact["data"]["status"] for fact in bench.facts("tool_complete")]
    assert statuses == ["failure", "failure"]


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-28")
@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([AnsweredApproval(approval_id="apr_0", verdict="expired")], "did not answer in time"),
        ([], "was withdrawn"),
        ([AnsweredApproval(approval_id="apr_of_another", verdict="approved")], "was withdrawn"),
    ],
)
async def test_without_a_yes_to_this_very_question_nothing_is_called(
    tmp_path: Path, answers: list[AnsweredApproval], said: str
) -> None:
    person = Person()
    tools = DictTools(send=person.asks("send"))
    bench = Bench(tmp_path, ListedModel([SEND], "It was not sent."), tools)
    first = await bench.run(message_id=ROOT)
    second = await resumed(bench, ROOT, first, *answers)
    assert (second.success, len(tools.calls)) == (True, 1)
    assert said in results_in(bench.sent())[0]


@pytest.mark.req("POL-03", "TRU-04")
async def test_what_was_done_before_the_question_may_be_claimed_after_it(tmp_path: Path) -> None:
    person = Person()
    claim = "I've created the note and sent the mail to Anna."
    tools = DictTools(create_note=lambda a: "created", send=person.asks("send"))
    bench = Bench(tmp_path, ListedModel([("create_note", {})], [SEND], claim), tools)
    first = await bench.run("Create a note and send Anna a mail", message_id=ROOT)
    assert (await resumed(bench, ROOT, first, person.yes("apr_0"))).text == claim


async def test_that_a_text_was_cut_is_not_said_again_when_its_turn_goes_on(tmp_path: Path) -> None:
    person = Person()
    bench = Bench(tmp_path, ListedModel([SEND], "Sent."), DictTools(send=person.asks("send")))
    first = await bench.run("Send Anna a mail. " * 50, message_id=ROOT)
    assert len(bench.facts("notice")) == 1
    await resumed(bench, ROOT, first, person.yes("apr_0"))
    assert bench.facts("notice") == []


@pytest.mark.req("POL-03")
async def test_several_questions_of_one_step_are_each_answered_for_themselves(tmp_path: Path) -> None:
    person = Person()
    tools = DictTools(read_only=("look", "fetch"), look=lambda a: "seen", fetch=person.asks("fetch"))
    calls: list[tuple[str, Any]] = [
        ("fetch", {"url": "a"}),
        ("look", {}),
        ("fetch", {"url": "b"}),
        ("fetch", {"url": "c"}),
    ]
    bench = Bench(tmp_path, ListedModel(calls, "ok"), tools)
    first = await bench.run(message_id=ROOT)
    await resumed(bench, ROOT, first, person.yes("apr_2"), person.no("apr_1"), person.yes("apr_0"))
    assert person.done == [("fetch", {"url": "a"}), ("fetch", {"url": "c"})]
    one, two, three, four = results_in(bench.sent())
    assert (one, two, four) == ("did fetch", "seen", "did fetch")
    assert "The user said no." in three


@pytest.mark.req("POL-03", "SES-01")
async def test_the_session_keeps_what_is_new_and_later_turns_read_the_whole_story_once(tmp_path: Path) -> None:
    person = Person()
    model = ListedModel([("note", {})], [SEND], "Sent.", "You are welcome.")
    bench = Bench(tmp_path, model, DictTools(note=lambda a: "noted", send=person.asks("send")))
    first = await bench.run("Send Anna a mail", message_id=ROOT)
    second = await resumed(bench, ROOT, first, person.yes("apr_0"))
    asked, answered = await records(bench)
    assert (asked.user, asked.assistant) == ("Send Anna a mail", first.text)
    assert (answered.user, answered.assistant) == ("(The user approved send.)", "Sent.")
    assert str(answered.messages).count("noted") == 0
    assert (asked.usage.input_tokens, answered.usage.input_tokens) == (20, 10)
    assert second.usage.input_tokens == 10
    await bench.run("Thanks")
    history = bench.sent()[1:-1]
    assert_valid(history)
    assert results_in(history)[-1] == "did send"
    assert said_in(history) == "Send Anna a mail\n(The user approved send.)"


@pytest.mark.req("POL-03")
async def test_a_turn_may_wait_again_and_its_earlier_records_are_not_told_twice(tmp_path: Path) -> None:
    person = Person()
    tools = DictTools(send=person.asks("send"), erase=person.asks("erase"))
    model = ListedModel([SEND, ("erase", {"id": 1})], [("send", {"to": "ben"})], "All done.")
    bench = Bench(tmp_path, model, tools)
    first = await bench.run("Tidy up", message_id=ROOT)
    second = await resumed(bench, ROOT, first, person.yes("apr_0"))
    assert [call.approval_id for call in parked(second).pending] == ["apr_1"]
    assert len(model.requests) == 1
    third = await resumed(bench, ROOT, second, person.yes("apr_1"))
    assert [call.arguments for call in parked(third).pending] == [{"to": "ben"}]
    fourth = await resumed(bench, ROOT, third, person.yes("apr_2"))
    assert fourth.text == "All done."
    assert person.done == [SEND, ("erase", {"id": 1}), ("send", {"to": "ben"})]
    sent = bench.sent()[1:]
    assert results_in(sent) == ["did send", "did erase", "did send"]
    assert said_in(sent).count("Tidy up") == 1
    assert "WAITS" not in str(sent)
    for record in await records(bench):
        assert record.user in ("Tidy up", "(The user approved send.)", "(The user approved erase.)")


@pytest.mark.req("POL-07", "LOOP-02")
async def test_limits_count_on_where_they_stood_and_waiting_counts_nowhere(tmp_path: Path) -> None:
    person = Person()
    numbers = iter(range(100))
    tools = DictTools(look=lambda a: f"fact {a['n']}", peek=lambda a: f"fact {a['n']}", send=person.asks("send"))

    def endless(request: object) -> list[tuple[str, Any]]:
        number = next(numbers)
        return [SEND] if number == 2 else [("look" if number % 2 else "peek", {"n": number})]

    model = ListedModel(endless)
    bench = Bench(tmp_path, model, tools, max_steps=5)
    first = await bench.run(message_id=ROOT)
    before = parked(first).progress["seconds"]
    assert isinstance(before, float)
    assert before < TurnLimits().wall_clock_seconds
    second = await resumed(bench, ROOT, first, person.yes("apr_0"))
    assert (second.limit, second.steps, len(model.requests)) == ("max_steps", 5, 5)


@pytest.mark.req("POL-07")
async def test_no_time_passes_for_a_turn_while_its_question_waits_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, real, later = Person(), time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + later[0])
    bench = Bench(
        tmp_path,
        ListedModel([SEND], [("look", {})], "Sent."),
        DictTools(look=lambda a: "seen", send=person.asks("send")),
    )
    first = await bench.run(message_id=ROOT)
    later[0] = 86_400.0
    second = await resumed(bench, ROOT, first, person.yes("apr_0"))
    assert (second.text, second.limit) == ("Sent.", None)
    assert person.done == [SEND]


@pytest.mark.req("LOOP-02")
async def test_tokens_mistakes_and_circles_of_before_count_too(tmp_path: Path) -> None:
    person = Person()
    tools = DictTools(look=lambda a: "the same", send=person.asks("send"), bad=lambda a: InvalidArguments("No."))
    spent = Bench(tmp_path / "a", ListedModel([("look", {})], [SEND], [SEND], "never said"), tools)
    first = await spent.run(message_id=ROOT)
    again = await resumed(spent, ROOT, first, person.yes("apr_0"))
    over = await resumed(spent, ROOT, again, person.yes("apr_1"), token_budget=45)
    assert (over.limit, over.usage.input_tokens) == ("token_budget", 0)
    slow = parked(first).model_copy(update={"progress": {**parked(first).progress, "seconds": 600.0}})
    late = await resumed(spent, ROOT, first.model_copy(update={"parked": slow}), person.yes("apr_0"))
    assert late.limit == "wall_clock"
    wrong = Bench(tmp_path / "b", ListedModel([("bad", {}), ("bad", {}), SEND], "never said"), tools)
    first = await wrong.run(message_id=ROOT)
    assert (await resumed(wrong, ROOT, first, person.no("apr_2"))).limit == "consecutive_mistakes"
    circles = Bench(tmp_path / "c", ListedModel([*[("send", {"to": "a"})]], [("send", {"to": "a"})]), tools)
    result = await circles.run(message_id=ROOT)
    for number in range(3, 8):
        result = await resumed(circles, ROOT, result, person.yes(f"apr_{number}"))
        if result.parked is None:
            break
    assert result.limit == "same_tool_in_a_row"


@pytest.mark.req("POL-03", "DUR-02")
async def test_a_crash_at_any_step_of_the_continuation_makes_no_call_twice(tmp_path: Path) -> None:
    person = Person()
    calls: list[tuple[str, Any]] = [SEND, ("note", {"n": 1}), ("note", {"n": 2})]
    tools = DictTools(note=lambda a: f"noted {a['n']}", send=person.asks("send"))
    model = ListedModel(calls, [("note", {"n": 3})], "Sent.")
    bench = Bench(tmp_path, model, tools)
    first = await bench.run(message_id=ROOT)
    second = await resumed(bench, ROOT, first, person.yes("apr_0"))
    recorded = ["send", "note 1", "note 2", "model", "note 3", "model"]
    assert len(bench.engine.records) == len(recorded)
    made = [call.call_id for call in tools.calls[1:]]
    for finished in range(len(recorded) + 1):
        tools.calls.clear()
        model = bench.model = ListedModel([("note", {"n": 3})], "Sent.") if finished < 4 else ListedModel("Sent.")
        bench.parts = replace(bench.parts, model=model)
        bench.engine.rewind(finished)
        again = await resumed(bench, ROOT, first, person.yes("apr_0"), message_id=second.message_id)
        assert (again.text, again.steps, again.tools_used) == (second.text, second.steps, second.tools_used)
        left = [name for name in recorded[finished:] if name != "model"]
        assert [call.call_id for call in tools.calls] == made[len(made) - len(left) :]
        assert len(model.requests) == recorded[finished:].count("model")
    assert len(await records(bench)) == 2


class OnlyNotes:
    """A selection that has no place for the tool that waits."""

    async def select(self, ask: SelectionRequest) -> ToolSelection:
        names = {"note"}
        tools = ask.available.tools
        chosen = tuple(tool for tool in tools if tool.name in names)
        others = tuple(tool for tool in tools if tool.name not in names)
        return ToolSelection(chosen, limit=1, others=others, wanted=("note",))


@pytest.mark.req("POL-03")
async def test_the_tools_that_wait_are_there_when_the_turn_goes_on_whatever_is_selected_then(tmp_path: Path) -> None:
    person = Person()
    bench = Bench(tmp_path, ListedModel([SEND], "Sent."), DictTools(note=lambda a: "noted", send=person.asks("send")))
    first = await bench.run(message_id=ROOT)
    bench.parts = replace(bench.parts, selector=OnlyNotes())
    await resumed(bench, ROOT, first, person.yes("apr_0"))
    assert person.done == [SEND]
    assert "send" in [tool.name for tool in bench.model.requests[-1].tools]


@pytest.mark.req("LOOP-09", "POL-03")
async def test_a_stop_while_the_approved_call_runs_leaves_its_outcome_open_and_the_session_valid(
    tmp_path: Path,
) -> None:
    running = asyncio.Event()
    person = Person()
    ask = person.asks("send")

    async def hang(arguments: dict[str, Any]) -> Any:
        if (result := ask(arguments)).approval_id is None:
            running.set()
            await asyncio.Event().wait()
        return result

    bench = Bench(tmp_path, ListedModel([SEND, ("note", {})], "ok"), DictTools(send=hang, note=lambda a: "noted"))
    first = await bench.run("Send it", message_id=ROOT)
    going = asyncio.create_task(resumed(bench, ROOT, first, person.yes("apr_0")))
    async with asyncio.timeout(seconds(10)):
        await running.wait()
        bench.live.cancel()
        second = await going
    assert (second.success, second.error and second.error.code) == (False, "cancelled")
    assert second.unknown_outcomes == (f"{second.message_id}:1:0",)
    await bench.run("And now?")
    history = bench.sent()[1:-1]
    assert_valid(history)
    assert "OUTCOME UNKNOWN" in str(history)
