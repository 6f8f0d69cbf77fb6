"""Answers that claim more than was done: sent back once, then told as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse

from annabelle.core.errors import InvalidArguments, OutcomeUnknown, ProviderRefused
from annabelle.core.trace import read_trace
from annabelle.thinker.selection.selection import SelectionRequest, ToolSelection
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.plain_parts import AllAllowed

SENT = "I've sent the email to Anna."
NOT_DONE = "I have not done that: no message was sent."


class SmallTalk:
    """A selector that takes everything for small talk."""

    async def select(self, ask: SelectionRequest) -> ToolSelection:
        chosen = await AllAllowed().select(ask)
        return ToolSelection(chosen.tools, small_talk=True)


def mailing(folder: Path, *replies: Any, **limits: Any) -> Bench:
    tools = DictTools(
        read_only=("web_search", "read_mail"),
        send_email=lambda a: InvalidArguments("no address") if a.get("broken") else "sent",
        write_file=lambda a: "written",
        read_mail=lambda a: "a mail",
        web_search=lambda a: "sunny",
    )
    return Bench(folder, ListedModel(*replies), tools, **limits)


def claims_told(folder: Path, trace_id: str) -> list[Any]:
    return [line["data"] for line in read_trace(folder / "traces.jsonl", trace_id) if line["event"] == "claims.checked"]


@pytest.mark.req("LOOP-05")
@pytest.mark.incident("I-24")
async def test_done_with_nothing_done_is_retried_once_with_a_tool_demanded_and_a_cool_head(tmp_path: Path) -> None:
    bench = mailing(tmp_path, "Done!", [("send_email", {"text": "hi"})], SENT)
    result = await bench.run("email Anna that I am late", message_id="msg_g", trace_id="tr_g")
    assert (result.text, result.tools_used, result.steps) == (SENT, ("send_email",), 3)
    asked = bench.model.requests
    assert [request.tool_choice for request in asked] == ["auto", "required", "auto"]
    assert asked[1].temperature is not None
    assert asked[1].temperature <= 0.3
    assert claims_told(tmp_path, "tr_g") == [
        {"claims": [{"kind": "done", "backed_by": None}], "refused": False, "again": "force"},
        {"claims": [{"kind": "send", "backed_by": "send_email"}], "refused": False, "again": None},
    ]


@pytest.mark.req("LOOP-05", "TRU-04")
@pytest.mark.incident("I-24")
async def test_a_claim_that_stays_without_a_deed_is_replaced_by_an_honest_sentence(tmp_path: Path) -> None:
    bench = mailing(tmp_path, SENT)
    result = await bench.run("email Anna")
    assert result.success
    assert result.text.startswith(NOT_DONE)
    assert (len(bench.model.requests), result.steps, result.tools_used) == (2, 2, ())
    assert [fact["data"]["text"] for fact in bench.facts("text")] == ["", result.text]
    bench.model.requests.clear()
    await bench.run("and now?")
    assert SENT not in str(bench.sent(0)), "a claim nobody may read again"
    assert NOT_DONE in str(bench.sent(0))


@pytest.mark.req("LOOP-05")
async def test_a_retry_that_admits_it_did_nothing_is_the_answer(tmp_path: Path) -> None:
    bench = mailing(tmp_path, SENT, "I do not know Anna's address. What is it?")
    assert (await bench.run("email Anna")).text == "I do not know Anna's address. What is it?"
    record = (await bench.sessions.turns("thr_one"))[0]
    assert len(record.messages) == 2


@pytest.mark.req("LOOP-05")
async def test_a_retry_that_the_provider_refuses_ends_honestly(tmp_path: Path) -> None:
    bench = mailing(tmp_path, SENT, ProviderRefused("Tool choice must be auto."))
    result = await bench.run("email Anna")
    assert result.success
    assert result.text.startswith(NOT_DONE)
    assert bench.facts("text")[-1]["data"]["text"] == result.text


@pytest.mark.req("LOOP-05")
async def test_an_empty_retry_ends_honestly(tmp_path: Path) -> None:
    bench = mailing(tmp_path, SENT, "")
    assert (await bench.run("email Anna")).text.startswith(NOT_DONE)


@pytest.mark.req("LOOP-05", "LOOP-02")
async def test_no_retry_goes_beyond_the_steps_of_a_turn(tmp_path: Path) -> None:
    bench = mailing(tmp_path, SENT, max_steps=1)
    result = await bench.run("email Anna")
    assert result.text.startswith(NOT_DONE)
    assert (result.limit, len(bench.model.requests)) == (None, 1)


@pytest.mark.req("LOOP-05")
async def test_there_is_one_second_chance_in_a_turn(tmp_path: Path) -> None:
    bench = mailing(tmp_path, SENT, [("write_file", {})], SENT)
    result = await bench.run("email Anna")
    assert [request.tool_choice for request in bench.model.requests] == ["auto", "required", "auto"]
    assert result.text == f"{SENT}\n\nNote: no message was sent in this turn."


@pytest.mark.req("LOOP-05")
async def test_small_talk_is_never_forced_into_a_tool_call(tmp_path: Path) -> None:
    bench = mailing(tmp_path, "You're welcome! I've saved your preferences.")
    object.__setattr__(bench.parts, "selector", SmallTalk())
    result = await bench.run("thanks!")
    assert result.text == "You're welcome! I've saved your preferences.\n\nNote: nothing was saved in this turn."
    assert [request.tool_choice for request in bench.model.requests] == ["auto"]


@pytest.mark.req("LOOP-05")
async def test_a_greeting_costs_one_request_and_demands_no_tool(tmp_path: Path) -> None:
    bench = mailing(tmp_path, "Hello! How can I help you?")
    result = await bench.run("hello")
    assert (result.text, len(bench.model.requests)) == ("Hello! How can I help you?", 1)
    assert bench.model.requests[0].tool_choice == "auto"


@pytest.mark.req("LOOP-05")
async def test_a_model_without_tools_is_not_asked_for_one(tmp_path: Path) -> None:
    bench = mailing(tmp_path, SENT)
    bench.model.tool_mode = "none"
    assert (await bench.run("email Anna")).text.startswith(NOT_DONE)
    assert len(bench.model.requests) == 1


@pytest.mark.req("TRU-04")
async def test_a_claim_beside_other_calls_is_sent_back_with_a_note_that_stays_out_of_history(tmp_path: Path) -> None:
    bench = mailing(tmp_path, [("read_mail", {})], SENT, "I read the mail, but I have not sent anything.")
    result = await bench.run("read Bob's mail and email Anna")
    assert result.text == "I read the mail, but I have not sent anything."
    draft, note = bench.sent(2)[-2:]
    assert isinstance(draft, ModelResponse)
    assert isinstance(note, ModelRequest)
    assert "in this turn no message was sent" in str(note)
    assert bench.model.requests[2].tool_choice == "auto"
    bench.model.requests.clear()
    await bench.run("thanks")
    assert "no message was sent" not in str(bench.sent(0))
    assert SENT not in str(bench.sent(0))


@pytest.mark.req("TRU-04")
async def test_a_failed_call_backs_no_claim(tmp_path: Path) -> None:
    bench = mailing(tmp_path, [("send_email", {"broken": True})], SENT)
    result = await bench.run("email Anna")
    assert result.text == f"{SENT}\n\nNote: no message was sent in this turn."
    assert len(bench.model.requests) == 3


@pytest.mark.req("TRU-04")
async def test_a_claim_that_a_call_of_any_step_bears_out_is_left_alone(tmp_path: Path) -> None:
    answer = "I checked your mail, wrote the file and sent the email."
    bench = mailing(tmp_path, [("read_mail", {})], [("write_file", {})], [("send_email", {})], answer)
    assert (await bench.run("do all that")).text == answer
    assert len(bench.model.requests) == 4


@pytest.mark.req("TRU-04", "DUR-03")
async def test_an_answer_sure_of_an_unknown_outcome_is_marked(tmp_path: Path) -> None:
    tools = DictTools(pay=lambda a: OutcomeUnknown("The server died."))
    bench = Bench(tmp_path, ListedModel([("pay", {})], "All fine, the bill is settled."), tools)
    result = await bench.run("pay the bill")
    assert result.text.startswith("All fine, the bill is settled.\n\nNote: it is not known whether pay took effect.")


@pytest.mark.req("TRU-04")
async def test_the_truth_of_an_earlier_turn_is_not_punished(tmp_path: Path) -> None:
    bench = mailing(tmp_path, [("send_email", {})], SENT, "Yes, I sent it to Anna.")
    await bench.run("email Anna")
    assert (await bench.run("did you send it?")).text == "Yes, I sent it to Anna."
    assert len(bench.model.requests) == 3


@pytest.mark.req("TRU-04")
async def test_who_asks_what_became_of_a_thing_does_not_have_it_done_again(tmp_path: Path) -> None:
    bench = mailing(tmp_path, [("send_email", {})], SENT, "I sent it to Anna at nine.")
    await bench.run("email Anna")
    assert (await bench.run("what happened to the email?")).text == "I sent it to Anna at nine."
    lost = mailing(tmp_path / "other", "I sent it to Anna at nine.")
    await lost.run("what happened to the email?")
    assert [request.tool_choice for request in lost.model.requests] == ["auto", "auto"]


@pytest.mark.req("TRU-04")
async def test_a_lie_about_an_earlier_turn_is_marked_and_nothing_is_demanded(tmp_path: Path) -> None:
    bench = mailing(tmp_path, "Yes, I have sent it.")
    result = await bench.run("did you send it?")
    assert result.text.endswith("Note: no message was sent in this turn.")
    assert [request.tool_choice for request in bench.model.requests] == ["auto", "auto"]


@pytest.mark.req("LOOP-05")
async def test_who_says_it_can_not_look_although_it_can_is_sent_back_once(tmp_path: Path) -> None:
    refusal = "I'm sorry, I don't have access to real-time weather data."
    bench = mailing(
        tmp_path / "a", refusal.replace("don't have access", "can't access"), [("web_search", {})], "Sunny."
    )
    assert (await bench.run("weather?")).text == "Sunny."
    assert bench.model.requests[1].tool_choice == "required"
    stubborn = mailing(tmp_path / "b", refusal)
    assert (await stubborn.run("weather?")).text == refusal
    assert len(stubborn.model.requests) == 2


@pytest.mark.req("TRU-04", "LOOP-06")
async def test_a_sent_message_that_claims_too_much_is_set_right_in_another(tmp_path: Path) -> None:
    tools = DictTools(send_message=lambda a: "sent")
    call = ("send_message", {"text": "I've deleted the file."})
    result = await Bench(tmp_path, ListedModel([call]), tools).run("delete the file")
    assert (result.sent_by_tool, result.text) == (False, "Note: nothing was deleted in this turn.")


@pytest.mark.req("LOOP-05", "DUR-02")
@pytest.mark.parametrize("finished", range(5))
async def test_a_replay_of_a_second_chance_ends_the_same(tmp_path: Path, finished: int) -> None:
    replies: list[Any] = [SENT, [("send_email", {})], SENT]
    bench = mailing(tmp_path, *replies)
    first = await bench.run("email Anna", message_id="msg_r")
    facts = [(fact["key"], str(fact["data"])) for fact in bench.live.stream.facts() if fact["type"] != "tool_complete"]
    assert len(bench.engine.records) == 4
    bench.model._replies = replies[[0, 1, 2, 2, 2][finished] :]  # pyright: ignore[reportPrivateUsage]
    bench.engine.rewind(finished)
    assert await bench.run("email Anna", message_id="msg_r") == first
    again = [(fact["key"], str(fact["data"])) for fact in bench.live.stream.facts() if fact["type"] != "tool_complete"]
    assert again == facts
    assert len({call.call_id for call in bench.tools.calls}) == 1


@pytest.mark.req("LOOP-05", "LLM-04")
async def test_the_usage_of_every_call_is_in_the_record_and_in_the_events(tmp_path: Path) -> None:
    leak = '<tool_call>{"name": "send_email", "arguments": {}}</tool_call>'
    bench = mailing(tmp_path, SENT, leak, SENT)
    result = await bench.run("email Anna")
    assert (result.usage.input_tokens, result.usage.output_tokens, result.steps) == (30, 15, 3)
    assert (await bench.sessions.turns("thr_one"))[0].usage == result.usage
    assert sum(fact["data"]["input_tokens"] for fact in bench.facts("usage")) == 30
