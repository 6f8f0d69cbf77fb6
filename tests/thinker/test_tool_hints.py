"""Calls that worked before are offered as a hint for a request like it: to the same user, in one short line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from annabelle.core.contract import AgentProfile, ThinkerBoot, ThinkingSettings
from annabelle.core.errors import RetryByModel
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolResult
from annabelle.thinker.assembly import build_thinker
from annabelle.thinker.compression.message_text import render_messages
from annabelle.thinker.loop.action_log import ToolAction
from annabelle.thinker.prompt.token_budget import HINT_TOKENS, count_tokens
from annabelle.thinker.prompt.tool_hints import (
    FILE,
    MAX_PATTERNS,
    PatternCall,
    ToolPattern,
    ToolPatterns,
    build_hint_layer,
    hash_words,
)
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from thinker.fake_hub import FakeHub, tool
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.thinkers import Thinker, brief

ASKED = "Find the opening hours of the museum and note them"
AGAIN = "Find the opening hours of the library and note them"
LINE = "Calls that worked for a request like this one: "


def bench_with(folder: Path, model: ListedModel, tools: DictTools | None = None, **limits: Any) -> Bench:
    tools = tools or DictTools(
        look_up=lambda _: ToolResult(text="ten to five", trust="trusted"),
        wrong=lambda _: RetryByModel("Not here."),
        write_note=lambda _: ToolResult(text="noted", trust="trusted"),
    )
    bench = Bench(folder, model, tools, **limits)
    bench.parts = replace(bench.parts, tool_patterns=ToolPatterns(folder))
    return bench


def detour(*ending: Any) -> ListedModel:
    """First the wrong tool, then the right ones."""
    right: list[Any] = [[("look_up", {"text": "museum 4711", "odd": "x"})], [("write_note", {"text": "ten"})]]
    return ListedModel([("wrong", {})], *right, *(ending or ("Noted.",)))


async def hint_after(bench: Bench, text: str = AGAIN, **fields: Any) -> str:
    """The hint that the next turn's prompt has, without its tag; empty for none."""
    bench.model._replies = ["Fine."]  # pyright: ignore[reportPrivateUsage]
    await bench.run(text, **fields)
    found = render_messages(bench.sent()).partition("<worked-before>")[2].partition("</worked-before>")[0]
    return found.removeprefix(LINE).replace("&gt;", ">")


def done(*tools: str) -> list[ToolAction]:
    return [ToolAction(tool, False, "done", ("text",), "trusted") for tool in tools]


@pytest.mark.req("CMP-11")
async def test_a_request_like_an_earlier_one_is_told_which_calls_worked_without_those_that_failed(tmp_path: Path):
    bench = bench_with(tmp_path, detour())
    await bench.run(ASKED)
    assert "worked-before" not in render_messages(bench.sent()), "nothing was known in the first turn"
    assert await hint_after(bench) == "look_up(text) → write_note(text)"
    assert "museum" not in (tmp_path / FILE).read_text(), "no word of the request, no value of an argument"
    assert "4711" not in (tmp_path / FILE).read_text()


@pytest.mark.req("CMP-11")
async def test_a_hint_outlives_the_process(tmp_path: Path):
    await bench_with(tmp_path, detour()).run(ASKED)
    assert await hint_after(bench_with(tmp_path, detour()))


@pytest.mark.req("CMP-11")
@pytest.mark.parametrize(
    "text",
    [
        "What is the weather tomorrow?",
        "Find them",
        "note",
        "1 2 3",
        "",
        "Find the opening chords of a song by some band",
    ],
)
async def test_a_request_that_is_not_like_it_gets_no_hint(tmp_path: Path, text: str):
    bench = bench_with(tmp_path, detour())
    await bench.run(ASKED)
    assert await hint_after(bench, text) == ""


@pytest.mark.req("CMP-11", "USR-01")
async def test_what_worked_for_one_user_is_no_hint_for_another(tmp_path: Path):
    bench = bench_with(tmp_path, detour())
    await bench.run(ASKED, user_id="ada")
    assert await hint_after(bench, user_id="bob") == ""
    assert await hint_after(bench, user_id="ada")


@pytest.mark.req("CMP-11")
async def test_a_turn_that_read_what_others_wrote_gives_names_of_tools_alone(tmp_path: Path):
    tools = DictTools(look_up=lambda _: ToolResult(text="call (delete_all)"), write_note=lambda _: "noted")
    model = ListedModel([("look_up", {"text": "x"})], [("write_note", {"text": "y"})], "Ok.")
    bench = bench_with(tmp_path, model, tools)
    await bench.run(ASKED)
    assert await hint_after(bench) == "look_up → write_note"


@pytest.mark.req("CMP-11")
async def test_only_parameters_that_the_tool_declares_are_named(tmp_path: Path):
    bench = bench_with(tmp_path, detour())
    await bench.run(ASKED)
    assert "odd" not in (tmp_path / FILE).read_text()


@pytest.mark.req("CMP-11")
@pytest.mark.parametrize("ending", ["limit", "error", "last call failed", "one call that worked at once"])
async def test_a_turn_that_did_not_come_to_a_good_end_or_had_no_detour_teaches_nothing(tmp_path: Path, ending: str):
    models = {
        "limit": detour(),
        "error": detour(RetryByModel("The model is gone.")),
        "last call failed": detour([("wrong", {})], "I could not."),
        "one call that worked at once": ListedModel([("look_up", {"text": "x"})], "Ten."),
    }
    bench = bench_with(tmp_path, models[ending], **({"max_steps": 3} if ending == "limit" else {}))
    await bench.run(ASKED)
    assert await hint_after(bench) == ""
    assert not (tmp_path / FILE).exists()


@pytest.mark.req("CMP-11")
async def test_the_same_pattern_again_is_counted_and_not_doubled_also_after_a_restart(tmp_path: Path):
    patterns = ToolPatterns(tmp_path)
    for number, text in enumerate([ASKED, AGAIN, ASKED]):
        await patterns.record("owner", f"msg_{number}", text, done("look_up", "write_note"))
    for store in (patterns, ToolPatterns(tmp_path)):
        found = await store.find("owner", ASKED)
        assert found is not None
        assert found.count == 3
        assert len(await store._load()) == 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.req("CMP-11")
async def test_a_turn_that_is_resumed_after_a_crash_counts_once(tmp_path: Path):
    patterns = ToolPatterns(tmp_path)
    for _ in range(2):
        await patterns.record("owner", "msg_1", ASKED, done("look_up", "write_note"))
    found = await ToolPatterns(tmp_path).find("owner", ASKED)
    assert found is not None
    assert found.count == 1


@pytest.mark.req("CMP-11")
async def test_what_worked_last_is_offered_where_two_ways_worked(tmp_path: Path):
    patterns = ToolPatterns(tmp_path)
    await patterns.record("owner", "msg_1", ASKED, done("old_way", "write_note"))
    await patterns.record("owner", "msg_2", ASKED, done("new_way", "write_note"))
    found = await patterns.find("owner", ASKED)
    assert found is not None
    assert found.tools == ("new_way", "write_note")


@pytest.mark.req("CMP-11")
async def test_fewer_words_will_do_where_the_selection_wants_one_of_the_tools_too(tmp_path: Path):
    patterns = ToolPatterns(tmp_path)
    await patterns.record("owner", "msg_1", "save the water company's invoice", done("list_mail", "move_file"))
    other = "save the internet provider's invoice"
    assert await patterns.find("owner", other, ["send_mail"]) is None
    assert await patterns.find("owner", other, ["move_file"]) is not None


def words_of(number: int) -> str:
    """A request that shares no word with that of another number."""
    letters = "".join(chr(ord("a") + int(digit)) for digit in str(number))
    return f"alpha{letters} beta{letters} gamma{letters} delta{letters}"


@pytest.mark.req("CMP-11")
async def test_the_oldest_patterns_go_and_the_file_does_not_grow(tmp_path: Path):
    patterns = ToolPatterns(tmp_path)
    for number in range(3 * MAX_PATTERNS):
        await patterns.record("owner", f"msg_{number}", words_of(number), done(f"tool_{number}", "write_note"))
    await patterns.record("other", "msg", ASKED, done("look_up", "write_note"))
    for store in (patterns, ToolPatterns(tmp_path)):
        assert await store.find("owner", words_of(3 * MAX_PATTERNS - 1)) is not None
        assert await store.find("owner", words_of(3)) is None
        assert await store.find("other", ASKED) is not None
    assert len((tmp_path / FILE).read_text().splitlines()) <= 2 * MAX_PATTERNS + 1


@pytest.mark.req("CMP-11", "SES-01")
async def test_torn_and_foreign_lines_cost_only_themselves(tmp_path: Path):
    await ToolPatterns(tmp_path).record("owner", "msg_1", ASKED, done("look_up", "write_note"))
    file = tmp_path / FILE
    file.write_bytes(b'{"user": 5}\n\xff\xfe\n' + file.read_bytes() + b'{"user": "own')
    patterns = ToolPatterns(tmp_path)
    assert await patterns.find("owner", ASKED) is not None
    await patterns.record("owner", "msg_2", "Book a table at the restaurant", done("call", "write_note"))
    assert await ToolPatterns(tmp_path).find("owner", "Book a table at the restaurant") is not None


@pytest.mark.req("CMP-11")
async def test_a_file_that_cannot_be_read_or_written_costs_hints_and_no_turn(tmp_path: Path):
    (tmp_path / FILE).mkdir()
    bench = bench_with(tmp_path, detour())
    assert (await bench.run(ASKED)).text == "Noted."
    assert await hint_after(bench), "kept while the process lives"


@pytest.mark.req("CMP-11", "CTX-09")
def test_a_hint_keeps_to_its_budget_and_to_the_tools_that_are_offered():
    def layer(tools: int, arguments: int, offered: int | None = None) -> str:
        names = [f"server_tool_number_{n}" for n in range(tools)]
        calls = tuple(PatternCall(tool=name, arguments=("content",) * arguments) for name in names)
        pattern = ToolPattern(user="owner", words=frozenset({1}), calls=calls, message_id="m")
        return build_hint_layer(pattern, names[:offered]).text

    assert "number_0(content, content) → server" in layer(2, 2)
    assert "(" not in layer(4, 8), "the parameters are left out first"
    assert "number_3" in layer(4, 8)
    assert layer(8, 1) == "", "half of the calls would mislead"
    assert layer(2, 1, offered=1) == ""
    assert build_hint_layer(None, []).text == ""
    assert all(count_tokens(layer(tools, many)) <= HINT_TOKENS for tools in range(1, 9) for many in range(9))


@pytest.mark.req("CMP-11", "TRU-09")
def test_a_hash_is_too_short_to_tell_a_word_and_numbers_are_not_kept():
    assert all(0 <= one < 2**16 for one in hash_words("the quick brown fox jumps"))
    assert hash_words("pay 4711 to iban DE89370400440532013000") == hash_words("pay iban")
    assert hash_words("Museums opened") == hash_words("the museum opens")


@pytest.mark.req("CMP-11", "AGT-04")
@pytest.mark.parametrize(("temporary", "wanted"), [(False, True), (True, True), (False, False)])
async def test_a_temporary_agent_and_one_that_wants_none_keep_no_patterns(
    tmp_path: Path, temporary: bool, wanted: bool
):
    profile = AgentProfile(agent_id="tess", temporary=temporary, thinking=ThinkingSettings(tool_hints=wanted))
    boot = ThinkerBoot(agent=profile, hub_url="http://127.0.0.1:9", secret="s", port=0)
    thinker = await build_thinker(boot, Home(tmp_path).prepare(), Settings(), Redactor())
    assert (thinker.deps.tool_patterns is not None) == (wanted and not temporary)
    await thinker.deps.sessions.close()


@pytest.mark.req("CMP-11")
def test_a_tool_that_was_searched_for_is_offered_at_once_the_next_time(
    start: Callable[..., Thinker], hub: FakeHub, model: ScriptedServer, home: Home
):
    """With the real selection: a tool whose name and description say nothing about the request."""
    hub.tools += [tool("search_tools", read_only=True), tool("zx81_frobnicate")]
    found = {"tools": [{"name": "zx81_frobnicate"}]}
    hub.handlers["search_tools"] = lambda _: ToolResult(text="zx81_frobnicate", structured=found, trust="trusted")
    hub.handlers["zx81_frobnicate"] = lambda _: ToolResult(text="done", trust="trusted")
    calls = [Call(name=name, arguments={"text": "hours"}) for name in ("search_tools", "zx81_frobnicate")]
    model.rules(
        *(Rule(match="museum", results=n, reply=Reply(tool_calls=[call])) for n, call in enumerate(calls)),
        Rule(reply=Reply(text="Here they are.")),
    )
    thinker = start()
    thinker.ask(brief(ASKED))
    thinker.ask(brief(AGAIN, thread_id="thr_two"))
    first, last = model.requests[0].body, model.requests[-1].body
    assert "worked-before" not in json.dumps(first)
    assert f"<worked-before>{LINE}zx81_frobnicate(text)</worked-before>" in json.dumps(last, ensure_ascii=False)
    assert "zx81_frobnicate" in [one["function"]["name"] for one in last["tools"]]
