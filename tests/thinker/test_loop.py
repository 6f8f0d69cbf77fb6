"""The loop's rules, each with a model that follows a list."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelRequest, ToolReturnPart

from annabelle.core.contract import TurnLimits
from annabelle.core.errors import HubUnreachable, InvalidArguments, NotAllowed, OutcomeUnknown
from annabelle.thinker.loop.turn_progress import LimitStop, TurnProgress, format_stop
from annabelle.thinker.prompt.prompt import NO_TOOLS
from support.timing import seconds
from thinker.fakes import Bench, DictTools, ListedModel


def results_sent(bench: Bench, number: int = -1) -> list[str]:
    """The tool results at the end of one request to the model."""
    last = bench.sent(number)[-1]
    assert isinstance(last, ModelRequest)
    return [str(part.content) for part in last.parts if isinstance(part, ToolReturnPart)]


@pytest.mark.req("LOOP-01")
async def test_the_loop_goes_on_until_the_model_asks_for_nothing_more(tmp_path: Path) -> None:
    model = ListedModel([("look", {"text": "a"})], [("look", {"text": "b"})], "Here it is.")
    bench = Bench(tmp_path, model, DictTools(look=lambda arguments: f"saw {arguments['text']}"))
    result = await bench.run()
    assert (result.success, result.text, result.steps, result.tools_used) == (True, "Here it is.", 3, ("look",))
    assert results_sent(bench) == ["saw b"]


@pytest.mark.req("LOOP-01")
async def test_read_only_calls_of_one_step_run_at_the_same_time(tmp_path: Path) -> None:
    met = asyncio.Barrier(3)

    async def meet(arguments: dict[str, object]) -> str:
        async with asyncio.timeout(seconds(5)):
            await met.wait()  # passes only when all three are running
        return str(arguments["text"])

    calls = [("look", {"text": name}) for name in "abc"]
    bench = Bench(tmp_path, ListedModel(calls, "done"), DictTools(read_only=("look",), look=meet))
    assert (await bench.run()).success
    assert results_sent(bench) == ["a", "b", "c"]


@pytest.mark.req("LOOP-01")
async def test_calls_run_in_order_when_one_of_them_writes(tmp_path: Path) -> None:
    tools = DictTools(read_only=("look",), look=lambda a: "seen", write=lambda a: "written")
    calls = [("look", {"text": "1"}), ("write", {"text": "2"}), ("look", {"text": "3"})]
    bench = Bench(tmp_path, ListedModel(calls, "done"), tools)
    await bench.run()
    assert [call.arguments["text"] for call in tools.calls] == ["1", "2", "3"]
    assert tools.most_running == 1


@pytest.mark.req("LOOP-02")
async def test_the_step_limit_returns_what_was_gathered_with_a_sentence(tmp_path: Path) -> None:
    counter = iter(range(100))
    model = ListedModel(lambda request: [("look" if next(counter) % 2 else "peek", {"n": next(counter)})])
    tools = DictTools(look=lambda a: f"fact {a['n']}", peek=lambda a: f"fact {a['n']}")
    result = await Bench(tmp_path, model, tools, max_steps=3).run()
    assert (result.success, result.limit, result.steps) == (True, "max_steps", 3)
    assert "3 steps" in result.text
    assert "fact 5" in result.text
    assert len(model.requests) == 3


@pytest.mark.req("LOOP-02")
async def test_a_chat_may_take_eight_steps_and_ten_minutes(tmp_path: Path) -> None:
    counter = iter(range(100))
    model = ListedModel(lambda request: [("look" if next(counter) % 2 else "peek", {"n": next(counter)})])
    tools = DictTools(look=lambda a: f"fact {a['n']}", peek=lambda a: f"fact {a['n']}")
    result = await Bench(tmp_path, model, tools).run()
    assert (result.limit, result.steps) == ("max_steps", 8)
    assert TurnLimits().wall_clock_seconds == 600


@pytest.mark.req("LOOP-02")
async def test_a_model_is_sent_no_more_history_than_the_limit_allows(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel("yes"), DictTools(), history_messages=4)
    for number in range(5):
        await bench.run(f"question {number}")
    sent = str(bench.sent())
    assert "question 1" not in sent
    assert "question 2" in sent
    assert TurnLimits().history_messages == 20


@pytest.mark.req("LOOP-02")
async def test_no_call_beyond_the_call_limit_is_made_and_the_model_may_still_answer(tmp_path: Path) -> None:
    tools = DictTools(look=lambda a: f"saw {a['n']}", write=lambda a: "ok")
    calls = [[("look", {"n": 1})], [("look", {"n": 2})]]
    answered = await Bench(tmp_path / "a", ListedModel(*calls, "enough"), tools, max_tool_calls=2).run()
    assert (answered.text, answered.limit) == ("enough", None)
    bench = Bench(
        tmp_path / "b", ListedModel(*calls, [("look", {"n": 3}), ("write", {})], "x"), tools, max_tool_calls=3
    )
    result = await bench.run()
    assert result.limit == "max_tool_calls"
    assert [call.arguments.get("n") for call in tools.calls[2:]] == [1, 2, 3]


@pytest.mark.req("LOOP-02")
async def test_the_same_call_five_times_in_a_row_stops_the_turn(tmp_path: Path) -> None:
    tools = DictTools(look=lambda a: "the same")
    result = await Bench(tmp_path, ListedModel([("look", {"text": "x"})]), tools).run()
    assert (result.limit, len(tools.calls)) == ("same_tool_in_a_row", 5)
    assert "look" in result.text


@pytest.mark.req("LOOP-02")
async def test_the_same_result_for_other_arguments_is_no_news_either(tmp_path: Path) -> None:
    numbers = iter(range(100))
    tools = DictTools(look=lambda a: "nothing found")
    result = await Bench(tmp_path, ListedModel(lambda r: [("look", {"n": next(numbers)})]), tools).run()
    assert (result.limit, len(tools.calls)) == ("same_tool_in_a_row", 5)


@pytest.mark.req("LOOP-02")
async def test_another_result_for_the_same_arguments_is_no_news_either(tmp_path: Path) -> None:
    clock = iter(range(100))
    tools = DictTools(look=lambda a: f"tick {next(clock)}")
    result = await Bench(tmp_path, ListedModel([("look", {"text": "x"})]), tools).run()
    assert (result.limit, len(tools.calls)) == ("same_tool_in_a_row", 5)


@pytest.mark.req("LOOP-02")
def test_what_the_model_said_before_a_limit_is_returned_before_the_sentence() -> None:
    said = format_stop(
        LimitStop("max_steps", "I stopped."), TurnProgress(last_text="Half of it.", last_result="the rest")
    )
    assert said == "Half of it.\n\nI stopped.\n\nThe last tool result was:\nthe rest"


@pytest.mark.req("LOOP-02")
async def test_new_results_may_go_on_to_ten_calls_of_one_tool(tmp_path: Path) -> None:
    numbers = iter(range(100))
    tools = DictTools(look=lambda a: f"page {a['n']}")
    model = ListedModel(lambda r: [("look", {"n": next(numbers)})])
    result = await Bench(tmp_path, model, tools, max_steps=30).run()
    assert (result.limit, len(tools.calls)) == ("same_tool_with_news", 10)


@pytest.mark.req("LOOP-02", "DUR-02")
async def test_the_clock_of_a_turn_counts_recorded_time_and_goes_on_after_a_crash(tmp_path: Path) -> None:
    model = ListedModel([("look", {"n": 1})], [("look", {"n": 2})], "never")
    bench = Bench(tmp_path, model, DictTools(look=lambda a: f"saw {a['n']}"), wall_clock_seconds=100)
    await bench.run(message_id="msg_a")
    bench.engine.records[1]["seconds"] = 99.5  # as if the first call had taken that long
    bench.engine.records[2]["seconds"] = 1.0
    before = len(model.requests)
    bench.engine.rewind(3)
    result = await bench.run(message_id="msg_a")
    assert result.limit == "wall_clock"
    assert len(model.requests) == before


@pytest.mark.req("LOOP-02")
async def test_a_model_that_does_not_answer_in_the_turns_time_ends_it(tmp_path: Path) -> None:
    async def never() -> str:
        await asyncio.sleep(60)
        return "late"

    bench = Bench(tmp_path, ListedModel(lambda r: never()), DictTools(), wall_clock_seconds=0.05)
    result = await bench.run()
    assert (result.success, result.limit) == (True, "wall_clock")


@pytest.mark.req("LOOP-10")
async def test_three_mistakes_in_a_row_end_the_turn_honestly(tmp_path: Path) -> None:
    numbers = iter(range(100))
    tools = DictTools(look=lambda a: InvalidArguments(f"n {a['n']} is wrong"))
    result = await Bench(tmp_path, ListedModel(lambda r: [("look", {"n": next(numbers)})]), tools).run()
    assert (result.limit, len(tools.calls)) == ("consecutive_mistakes", 3)
    assert "failed" in result.text
    assert result.tools_used == ()


@pytest.mark.req("LOOP-10")
async def test_a_success_in_between_forgives_the_mistakes(tmp_path: Path) -> None:
    bad = [("look", {"n": -1})]
    tools = DictTools(look=lambda a: InvalidArguments("wrong") if a["n"] < 0 else "right", other=lambda a: "fine")
    model = ListedModel(bad, bad, [("other", {})], bad, bad, "I managed.")
    assert (await Bench(tmp_path, model, tools).run()).text == "I managed."


@pytest.mark.req("LOOP-07", "LLM-04")
@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (InvalidArguments("`n` must be a number."), "Correct the arguments"),
        (NotAllowed("Blocked."), "Do not try again"),
    ],
)
async def test_a_tool_error_goes_back_to_the_model_with_what_to_do(
    tmp_path: Path, error: InvalidArguments, advice: str
) -> None:
    bench = Bench(tmp_path, ListedModel([("look", {})], "sorry"), DictTools(look=lambda a: error))
    result = await bench.run()
    assert result.text == "sorry"
    told = results_sent(bench)[0]
    assert error.message in told
    assert advice in told
    complete = bench.facts("tool_complete")[0]["data"]
    assert (complete["status"], complete["error"]["code"]) == ("failure", error.code)


@pytest.mark.req("DUR-03", "LOOP-07")
async def test_an_unknown_outcome_is_told_to_model_and_user_and_is_not_repeated(tmp_path: Path) -> None:
    tools = DictTools(pay=lambda a: OutcomeUnknown("The server died while it paid."))
    bench = Bench(tmp_path, ListedModel([("pay", {})], "It is not known whether it was paid."), tools)
    result = await bench.run(message_id="msg_p")
    assert result.unknown_outcomes == ("msg_p:1:0",)
    assert "Do not repeat it" in results_sent(bench)[0]
    assert len(tools.calls) == 1


@pytest.mark.req("DUR-03")
async def test_a_call_whose_hub_fell_silent_is_of_unknown_outcome(tmp_path: Path) -> None:
    def pay(arguments: dict[str, object]) -> str:
        raise HubUnreachable("The hub does not answer.")

    tools = DictTools(pay=pay)
    bench = Bench(tmp_path, ListedModel([("pay", {})], "It is not known whether it was paid."), tools)
    result = await bench.run(message_id="msg_h")
    assert result.unknown_outcomes == ("msg_h:1:0",)
    assert "Do not repeat it" in results_sent(bench)[0]
    assert len(tools.calls) == 1


@pytest.mark.req("LOOP-07")
async def test_an_invented_tool_is_answered_with_the_closest_names(tmp_path: Path) -> None:
    tools = DictTools(look_up=lambda a: "x")
    bench = Bench(tmp_path, ListedModel([("lookup", {})], "ok"), tools)
    await bench.run()
    assert "look_up" in results_sent(bench)[0]
    assert tools.calls == []


@pytest.mark.req("LOOP-07")
async def test_arguments_that_are_not_an_object_are_a_mistake_the_model_can_correct(tmp_path: Path) -> None:
    tools = DictTools(look=lambda a: "x")
    bench = Bench(tmp_path, ListedModel([("look", '{"text": ')], [("look", '{"text": "y"}')], "ok"), tools)
    assert (await bench.run()).text == "ok"
    assert "not a JSON object" in results_sent(bench, 1)[0]
    assert [call.arguments for call in tools.calls] == [{"text": "y"}]


@pytest.mark.req("LOOP-06", "RTR-07")
async def test_a_conversational_agent_stops_after_it_sent_its_message(tmp_path: Path) -> None:
    tools = DictTools(send_message=lambda a: "sent", look=lambda a: "x")
    bench = Bench(tmp_path, ListedModel([("send_message", {"text": "Hi!"}), ("look", {})], "again"), tools)
    result = await bench.run()
    assert (result.sent_by_tool, result.text, len(bench.model.requests)) == (True, "Hi!", 1)
    assert [call.name for call in tools.calls] == ["send_message"]


@pytest.mark.req("LOOP-06")
async def test_a_task_goes_on_after_it_sent_a_message(tmp_path: Path) -> None:
    tools = DictTools(send_message=lambda a: "sent")
    result = await Bench(tmp_path, ListedModel([("send_message", {"text": "Hi!"})], "all done"), tools).run(
        conversational=False
    )
    assert (result.sent_by_tool, result.text) == (False, "all done")


@pytest.mark.req("LOOP-06")
async def test_a_message_that_could_not_be_sent_does_not_end_the_turn(tmp_path: Path) -> None:
    tools = DictTools(send_message=lambda a: NotAllowed("No such chat."))
    result = await Bench(tmp_path, ListedModel([("send_message", {"text": "Hi!"})], "I could not."), tools).run()
    assert (result.sent_by_tool, result.text) == (False, "I could not.")


@pytest.mark.req("LOOP-08")
async def test_input_is_cleaned_and_a_cut_is_told_to_model_and_user(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel("ok"), DictTools())
    await bench.run("a\x00b\x1b[31mc\r\n" + "x" * 300)
    sent = str(bench.sent()[-1])
    assert "ab[31mc\\n" in sent
    assert "were cut" in sent
    assert "were cut" in bench.facts("notice")[0]["data"]["text"]


@pytest.mark.req("LLM-04")
async def test_every_kind_of_event_is_told_in_order(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel([("look", {"text": "x"})], "done"), DictTools(look=lambda a: "seen"))
    await bench.run(message_id="msg_e")
    keys = [fact["key"] for fact in bench.live.stream.facts()]
    assert keys == ["1:usage", "1:tool:0:start", "1:tool:0:complete", "2:text", "2:usage"]
    start = bench.facts("tool_start")[0]["data"]
    assert start == {"call_id": "msg_e:1:0", "name": "look", "arguments": {"text": "x"}}
    assert bench.facts("text")[0]["data"] == {"text": "done", "final": True}


@pytest.mark.req("DUR-02")
@pytest.mark.parametrize("finished", range(6))
async def test_a_replay_repeats_no_finished_step_and_ends_the_same(tmp_path: Path, finished: int) -> None:
    tools = DictTools(look=lambda a: f"saw {a['n']}")
    model = ListedModel([("look", {"n": 1})], [("look", {"n": 2})], "the end")
    bench = Bench(tmp_path, model, tools)
    first = await bench.run(message_id="msg_r")
    facts = {(fact["key"], str(fact["data"])) for fact in bench.live.stream.facts() if fact["type"] != "tool_complete"}
    asked, called = len(model.requests), len(tools.calls)
    assert len(bench.engine.records) == 5
    model._replies = [[("look", {"n": 1})], [("look", {"n": 2})], "the end"][(finished + 1) // 2 :] or ["the end"]
    bench.engine.rewind(finished)
    again = await bench.run(message_id="msg_r")
    assert again == first
    done = ["model", "tool", "model", "tool", "model"][:finished]
    assert len(model.requests) - asked == 3 - done.count("model")
    assert len(tools.calls) - called == 2 - done.count("tool")
    assert facts == {(f["key"], str(f["data"])) for f in bench.live.stream.facts() if f["type"] != "tool_complete"}
    assert len(await bench.sessions.turns("thr_one")) == 1


@pytest.mark.req("CTX-08")
async def test_a_model_without_tools_is_told_so(tmp_path: Path) -> None:
    model = ListedModel("Hello.")
    await Bench(tmp_path, model, DictTools(look=lambda _: "x")).run("hi")
    await Bench(tmp_path, model, DictTools()).run("hi")
    model.tool_mode = "none"
    await Bench(tmp_path, model, DictTools(look=lambda _: "x")).run("hi")
    assert [NO_TOOLS in str(request.messages) for request in model.requests] == [False, True, True]
