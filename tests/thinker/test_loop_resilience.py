"""Models that answer badly: too much at once, nothing, nonsense; and what a turn may use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from annabelle.core.contract import ToolCall
from annabelle.core.errors import ProviderDown
from annabelle.core.tools import ToolResult
from annabelle.llm.types import Completed, ModelChoice, ModelEvent, ModelRequest as ModelAsk, Purpose
from annabelle.thinker.compression.port import CompressionRequest, CompressionResult
from annabelle.thinker.loop.turn_progress import MAX_PARALLEL_CALLS
from annabelle.thinker.selection.selection import SelectionRequest, ToolSelection
from support.timing import seconds
from thinker.fake_hub import tool
from thinker.fakes import Bench, DictTools, ListedModel, SmallModel
from thinker.plain_parts import WholeHistory


def returned(bench: Bench, number: int = -1) -> list[ToolReturnPart]:
    last = bench.sent(number)[-1]
    assert isinstance(last, ModelRequest)
    return [part for part in last.parts if isinstance(part, ToolReturnPart)]


def called(bench: Bench, number: int = -1) -> list[ToolCallPart]:
    response = bench.sent(number)[-2]
    assert isinstance(response, ModelResponse)
    return [part for part in response.parts if isinstance(part, ToolCallPart)]


@pytest.mark.req("LOOP-02")
async def test_forty_calls_at_once_are_made_in_part_and_the_rest_is_answered_not_done(tmp_path: Path) -> None:
    tools = DictTools(read_only=("look",), look=lambda a: f"saw {a['n']}")
    bench = Bench(tmp_path, ListedModel([("look", {"n": n}) for n in range(40)], "Enough seen."), tools,
                  same_tool_with_news=99, max_steps=5)  # fmt: skip
    result = await bench.run()
    assert (result.text, result.limit, len(tools.calls)) == ("Enough seen.", None, MAX_PARALLEL_CALLS)
    parts = returned(bench)
    assert len(parts) == 40
    assert {part.tool_call_id for part in parts} == {part.tool_call_id for part in called(bench)}
    assert [str(part.content).startswith("NOT DONE, too many at once") for part in parts] == [
        n >= 16 for n in range(40)
    ]


@pytest.mark.req("LOOP-02")
async def test_of_forty_calls_no_more_are_made_than_the_turn_allows(tmp_path: Path) -> None:
    tools = DictTools(look=lambda a: f"saw {a['n']}")
    bench = Bench(tmp_path, ListedModel([("look", {"n": n}) for n in range(40)], "x"), tools, max_tool_calls=5)
    result = await bench.run()
    assert (result.limit, len(tools.calls)) == ("max_tool_calls", 5)


@pytest.mark.req("LOOP-07")
async def test_calls_with_the_same_id_are_told_apart(tmp_path: Path) -> None:
    def twins(_request: object) -> Any:
        return [("look", {"n": 1}), ("look", {"n": 2})]

    class SameId(ListedModel):
        async def request(self, request: ModelAsk) -> AsyncGenerator[ModelEvent]:
            async for event in super().request(request):
                for part in event.response.parts if isinstance(event, Completed) else ():
                    if isinstance(part, ToolCallPart):
                        part.tool_call_id = "same"
                yield event

    tools = DictTools(read_only=("look",), look=lambda a: f"saw {a['n']}")
    bench = Bench(tmp_path, SameId(twins, "Both seen."), tools)
    assert (await bench.run()).text == "Both seen."
    assert [part.content for part in returned(bench)] == ["saw 1", "saw 2"]
    ids = [part.tool_call_id for part in called(bench)]
    assert len(set(ids)) == 2
    assert ids == [part.tool_call_id for part in returned(bench)]


@pytest.mark.req("LOOP-07")
async def test_a_call_without_a_name_is_a_mistake_the_model_can_correct(tmp_path: Path) -> None:
    tools = DictTools(look=lambda a: "seen")
    bench = Bench(tmp_path, ListedModel([("", {"text": "x"})], [("look", {"text": "x"})], "There."), tools)
    assert (await bench.run()).text == "There."
    assert "There is no tool named" in str(returned(bench, 1)[0].content)
    assert all(part.tool_name for part in called(bench, 1))


@pytest.mark.req("LOOP-07", "LOOP-10")
async def test_several_unknown_tools_at_once_are_each_answered_and_end_the_turn_honestly(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel([("a", {}), ("b", {}), ("c", {})]), DictTools(look=lambda a: "x"))
    result = await bench.run()
    assert (result.success, result.limit, result.tools_used) == (True, "consecutive_mistakes", ())
    record = (await bench.sessions.turns("thr_one"))[0]
    assert str(record.messages).count("There is no tool named") == 3


@pytest.mark.req("LOOP-07")
async def test_arguments_that_are_no_json_leave_a_history_every_provider_can_read(tmp_path: Path) -> None:
    tools = DictTools(look=lambda a: "x")
    bench = Bench(tmp_path, ListedModel([("look", '{"text": ')], "I could not look."), tools)
    await bench.run()
    assert called(bench)[0].args_as_dict() == {"INVALID_JSON": '{"text": '}
    assert tools.calls == []


@pytest.mark.req("LOOP-02")
async def test_a_turn_ends_with_what_it_has_when_its_tokens_are_used_up(tmp_path: Path) -> None:
    counter = iter(range(100))
    tools = DictTools(look=lambda a: f"fact {a['n']}")
    model = ListedModel(lambda request: [("look", {"n": next(counter)})])
    bench = Bench(tmp_path, model, tools)
    result = await bench.run(token_budget=31)
    assert (result.success, result.limit, len(model.requests)) == (True, "token_budget", 3)
    assert "31 tokens" in result.text
    assert "fact 2" in result.text


@pytest.mark.req("LOOP-02")
async def test_an_answer_that_uses_the_last_tokens_is_still_the_answer(tmp_path: Path) -> None:
    result = await Bench(tmp_path, ListedModel("Here."), DictTools()).run(token_budget=1)
    assert (result.text, result.limit) == ("Here.", None)


class Pondering(WholeHistory):
    """Thinks before each request, and counts what that costs."""

    async def think(self, ask: CompressionRequest) -> CompressionResult:
        return CompressionResult(list(ask.messages), thinking_tokens=7)


async def test_what_thinking_costs_is_in_the_usage_the_record_and_the_budget(tmp_path: Path) -> None:
    tools = DictTools(look=lambda a: "seen")
    bench = Bench(tmp_path, ListedModel([("look", {})], "There."), tools)
    object.__setattr__(bench.parts, "compressor", Pondering())
    result = await bench.run()
    assert (result.usage.input_tokens, result.usage.output_tokens) == (34, 10)
    assert (await bench.sessions.turns("thr_one"))[0].usage == result.usage
    assert sum(fact["data"]["input_tokens"] for fact in bench.facts("usage")) == 34
    poor = Bench(tmp_path / "poor", ListedModel([("look", {})], "never"), tools)
    object.__setattr__(poor.parts, "compressor", Pondering())
    assert (await poor.run(token_budget=20)).limit == "token_budget"


class Few:
    """Gives the model one tool and lets it look for the others."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    async def select(self, ask: SelectionRequest) -> ToolSelection:
        tools = ask.available.tools
        first = tuple(one for one in tools if one.name == "search_tools")
        return ToolSelection(first, limit=self._limit, others=tuple(one for one in tools if one not in first))


class Catalogue(DictTools):
    """A hub whose `search_tools` finds everything."""

    async def call(self, call: ToolCall, user_id: str) -> ToolResult:
        if call.name != "search_tools":
            return await super().call(call, user_id)
        self.calls.append(call)
        rows = [{"name": name} for name in ("fly", "swim", "walk", "no_such_tool")]
        return ToolResult(text="found", structured={"tools": [*rows, "nonsense"]})


@pytest.mark.req("SEL-02")
@pytest.mark.parametrize(("limit", "offered"), [(25, 4), (4, 3), (1, 1)])
async def test_tools_the_model_finds_join_the_next_step_within_the_cap(
    tmp_path: Path, limit: int, offered: int
) -> None:
    tools = Catalogue(search_tools=lambda a: "", fly=lambda a: "flown", swim=lambda a: "", walk=lambda a: "")
    tools.specs = [tool(name) for name in ("search_tools", "fly", "swim", "walk")]
    bench = Bench(tmp_path, ListedModel([("search_tools", {"text": "move"})], [("fly", {})], "There."), tools)
    object.__setattr__(bench.parts, "selector", Few(limit))
    result = await bench.run()
    names = [[one.name for one in request.tools] for request in bench.model.requests]
    assert names[0] == ["search_tools"]
    assert (len(names[1]), names[1][:1]) == (offered, ["search_tools"])
    assert ("fly" in result.tools_used) is (offered > 1)


@pytest.mark.req("LOOP-09")
async def test_a_stop_does_not_wait_for_what_does_not_listen(tmp_path: Path) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def deaf(arguments: dict[str, object]) -> str:
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    bench = Bench(tmp_path, ListedModel([("deaf", {})], "never"), DictTools(deaf=deaf))
    turn = asyncio.create_task(bench.run("go"))
    await asyncio.wait_for(begun.wait(), seconds(5))
    bench.live.cancel()
    try:
        result = await asyncio.wait_for(turn, seconds(5))
    finally:
        release.set()
    assert result.error is not None
    assert result.error.code == "cancelled"
    assert len(result.unknown_outcomes) == 1


class Endless(WholeHistory):
    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def think(self, ask: CompressionRequest) -> CompressionResult:
        self.begun.set()
        await asyncio.sleep(60)
        return CompressionResult(list(ask.messages))


@pytest.mark.req("LOOP-09")
async def test_a_stop_ends_the_thinking_before_a_request(tmp_path: Path) -> None:
    bench, thinking = Bench(tmp_path, ListedModel("never"), DictTools()), Endless()
    object.__setattr__(bench.parts, "compressor", thinking)
    turn = asyncio.create_task(bench.run("go"))
    await asyncio.wait_for(thinking.begun.wait(), seconds(5))
    bench.live.cancel()
    result = await asyncio.wait_for(turn, seconds(5))
    assert result.error is not None
    assert result.error.code == "cancelled"
    object.__setattr__(bench.parts, "compressor", WholeHistory())
    assert (await bench.run("and now?")).text == "never"


class NotYetThere(ListedModel):
    """A local server that comes up after so many looks at it."""

    looks = 4

    async def choose(self, purpose: Purpose = "chat") -> ModelChoice:
        self.looks -= 1
        if self.looks >= 0:
            raise ProviderDown("No model server is running.")
        return await super().choose(purpose)


@pytest.mark.req("DUR-05")
async def test_a_model_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NotYetThere("Here I am."), DictTools())
    assert (await bench.run("hello")).text == "Here I am."
    assert len(bench.engine.waits) == 3


class Stuck:
    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def select(self, ask: SelectionRequest) -> ToolSelection:
        self.begun.set()
        await asyncio.sleep(60)
        return ToolSelection(())


@pytest.mark.req("LOOP-09")
async def test_a_stop_ends_the_choice_of_tools(tmp_path: Path) -> None:
    bench, stuck = Bench(tmp_path, ListedModel("never"), DictTools()), Stuck()
    object.__setattr__(bench.parts, "selector", stuck)
    turn = asyncio.create_task(bench.run("go"))
    await asyncio.wait_for(stuck.begun.wait(), seconds(5))
    bench.live.cancel()
    result = await asyncio.wait_for(turn, seconds(5))
    assert result.error is not None
    assert result.error.code == "cancelled"


@pytest.mark.req("FST-01", "AGE-01")
async def test_the_packaged_model_talks_and_is_given_no_goals_or_skills(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SmallModel("Hello."), DictTools())
    assert (await bench.run("hello")).text == "Hello."
    for terms in ({"instructions": "Look after the goal."}, {"conversational": False}):
        refused = await bench.run("See whether something should be done.", **terms)
        assert refused.error is not None
        assert (refused.error.code, "annabelle init" in (refused.error.hint or "")) == ("model_too_small", True)
    assert len(bench.model.requests) == 1
    assert not bench.engine.waits, "trying again does not help"
