"""Choosing the tools of a turn: the three paths, who has a place for sure, and the cap that really caps."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from annabelle.core.contract import ToolList
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.core.trace import read_trace
from annabelle.embeddings import EmbeddingConfig, EmbeddingsUnavailable, ModelName, make_embedder
from annabelle.language.lexicon import load_lexicon
from annabelle.skills.playbook_folder import PlaybookFolder
from annabelle.thinker.selection import hybrid_selector
from annabelle.thinker.selection.hybrid_selector import (
    CORE,
    HybridSelector,
    SelectionCandidates,
    SelectionLimits,
    choose_tools,
)
from annabelle.thinker.selection.keywords import KeywordRoutes, RoutedTools, load_packaged_routes
from annabelle.thinker.selection.selection import SelectionRequest, ToolSelection
from annabelle.toolbox.ranking import RankedTool, ToolRanker, ToolRanking
from support.timing import seconds
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.plain_parts import AllAllowed
from thinker.thinkers import brief

_EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "tools"
_LIMITS = SelectionLimits(threshold=0.3, top_k=15, min_tools=5, max_tools=25)
_HOUSE = {
    "filer": "list_files read_file create_file delete_file move_file copy_file search_files check_grant request_grant "
    "list_grants get_workspace_info get_audit_log update_file",
    "searcher": "web_search news_search image_search web_fetch",
    "memory": "store_fact list_facts retrieve_memories get_profile store_skill list_skills update_skill",
    "gmail": "send_email list_emails get_email create_event list_events find_free_time create_draft",
    "telegram": "send_message get_messages list_chats",
    "codexec": "execute_code run_script",
    "web": "browser_navigate browser_click browser_take_screenshot",
}
_OTHERS = [f"{server}_{name}" for server, names in _HOUSE.items() for name in names.split()]


def spec(name: str, server: str = "hub", **fields: object) -> ToolSpec:
    said = name.removeprefix(f"{server}_")
    given: JsonObject = {
        "name": name,
        "server": server,
        "original_name": said,
        "description": said.replace("_", " ").capitalize() + ".",
        "input_schema": {"type": "object", "properties": {}},
        **fields,
    }
    return ToolSpec.model_validate(given)


def house(*more: ToolSpec) -> ToolList:
    tools = [spec(f"{server}_{name}", server) for server, names in _HOUSE.items() for name in names.split()]
    core = [spec(name) for name in (*CORE, "send_telegram", "queue_task", "get_job_status")]
    return ToolList(version=f"house-{len(more)}", tools=(*tools, *core, *more))


@pytest.fixture(autouse=True)
def nothing_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for tools of external servers. `test_select_learned` has the built-in ones."""
    monkeypatch.setattr(hybrid_selector, "packaged_tool_odds", lambda: None)


@pytest.fixture
def rank_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives the first tools of the house these scores, whatever the message is."""

    def stub(*scores: float) -> None:
        ranked = tuple(RankedTool(name, score) for name, score in zip(_OTHERS, scores, strict=False))

        async def rank(_ranker: ToolRanker, _tools: ToolList, _text: str) -> ToolRanking:
            return ToolRanking(ranked, "hybrid")

        monkeypatch.setattr(ToolRanker, "rank", rank)

    return stub


class NoVectors:
    model = ModelName("none", "")

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        raise EmbeddingsUnavailable("Embeddings are switched off.")

    async def close(self) -> None: ...


def selector(*, vectors: bool = True, temperature: float = 0.7, **changes: object) -> HybridSelector:
    chosen = Settings.model_validate(changes)
    embedder = make_embedder(EmbeddingConfig(), None) if vectors else NoVectors()
    return HybridSelector(chosen, embedder, temperature)


async def select(text: str, *, vectors: bool = True, tools: ToolList | None = None, **ask: object) -> ToolSelection:
    required = ask.pop("required_tools", None)
    asked = SelectionRequest(brief(text, required_tools=required), text, tools or house(), **ask)  # type: ignore[arg-type]
    return await selector(vectors=vectors).select(asked)


def house_bench(folder: Path) -> Bench:
    """A turn whose model is offered what the selector picks from the house."""
    listed = house().tools
    tools = DictTools(**{tool.name: lambda _: "Done." for tool in listed})
    tools.specs = list(listed)
    bench = Bench(folder, ListedModel("Fine."), tools)
    bench.parts = replace(bench.parts, selector=selector(vectors=False))
    return bench


@pytest.mark.req("SEL-01")
async def test_required_tools_are_exactly_those_and_nothing_else() -> None:
    chosen = await select(
        "send a mail",
        required_tools=("filer_read_file", "gone_tool"),
        sticky=("searcher_web_search",),
        playbook_tools=("gmail_send_email",),
        local=(spec("search_agent_history", "thinker"),),
    )
    assert chosen.names() == ["filer_read_file"]
    assert chosen.missing == ("gone_tool",)
    assert (await select("send a mail", required_tools=())).names() == []
    alias = await select("send a mail", required_tools=("send_telegram",))
    assert (alias.names(), alias.missing) == (["send_telegram"], ())
    assert chosen.report is not None
    assert chosen.report.method == "required"


@pytest.mark.req("SEL-02", "SEL-04")
@pytest.mark.parametrize("vectors", [True, False])
async def test_a_question_about_files_gets_file_tools_and_the_core_and_little_else(vectors: bool) -> None:
    chosen = await select("what files do I have?", vectors=vectors)
    names = set(chosen.names())
    assert {"filer_list_files", "filer_search_files", *CORE} <= names
    assert len(names) <= 20
    assert "send_telegram" not in names  # the same tool under its old name would be sent twice


@pytest.mark.req("SEL-04")
@pytest.mark.parametrize("text", ["hello", "send an email to Ada", "xyzzy plugh"])
async def test_the_five_tools_that_are_promised_are_always_there(text: str) -> None:
    promised = {"send_message", "store_fact", "search_memories", "get_status", "spawn_subagent"}
    assert promised <= set((await select(text)).names())


@pytest.mark.req("SEL-04")
async def test_core_tools_come_first_and_both_parts_are_sorted_so_that_the_prefix_stays() -> None:
    chosen = await select("send an email to Ada")
    names = chosen.names()
    assert names[: len(CORE)] == sorted(CORE)
    assert names[len(CORE) :] == sorted(names[len(CORE) :])
    assert names == (await select("send an email to Ada")).names()


@pytest.mark.req("SEL-04")
async def test_tools_of_the_thinker_itself_are_always_there() -> None:
    own = spec("search_agent_history", "thinker")
    assert "search_agent_history" in (await select("hello", local=(own,))).names()
    assert "search_agent_history" in (await select("send an email", local=(own,))).names()


@pytest.mark.req("SEL-03")
async def test_without_vectors_the_words_of_a_route_choose_its_group() -> None:
    chosen = await select("is there anything new in my inbox", vectors=False)
    assert {"gmail_list_emails", "gmail_get_email"} <= set(chosen.names())
    assert chosen.report is not None
    assert chosen.report.method == "words"


@pytest.mark.req("SEL-03")
async def test_when_nothing_matches_search_and_memory_are_offered() -> None:
    chosen = await select("xyzzy plugh", vectors=False)
    assert {"searcher_web_search", "memory_retrieve_memories"} <= set(chosen.names())
    assert not any(name.startswith(("filer_", "gmail_", "telegram_")) for name in chosen.names())
    assert chosen.report is not None
    assert chosen.report.method == "default"


@pytest.mark.req("SEL-05", "SEL-06")
async def test_sticky_and_playbook_tools_are_in_whatever_the_message_says() -> None:
    chosen = await select(
        "take a screenshot", sticky=("filer_read_file", "gone"), playbook_tools=("gmail_find_free_time",)
    )
    assert {"filer_read_file", "gmail_find_free_time", "web_browser_take_screenshot"} <= set(chosen.names())


@pytest.mark.req("SEL-06", "SEL-09")
@pytest.mark.parametrize("text", ["Good morning!", "Good morning, take a screenshot"])
async def test_the_model_gets_the_tools_of_the_playbook_that_matches_even_for_a_greeting(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "briefing.md").write_text(
        "---\nname: briefing\ndescription: The day\nkeywords: [good morning]\n"
        "required_tools: [gmail_find_free_time]\n---\nTell what is due.\n"
    )
    bench = house_bench(tmp_path)
    await bench.run(text)
    bench.parts = replace(bench.parts, playbooks=PlaybookFolder(tmp_path))
    await bench.run(text, trace_id="tr_1")
    without, offered = ([tool.name for tool in request.tools] for request in bench.model.requests)
    assert "gmail_find_free_time" not in without
    assert "gmail_find_free_time" in offered
    (told,) = [
        line["data"] for line in read_trace(tmp_path / "traces.jsonl", "tr_1") if line["event"] == "tools.selected"
    ]
    assert (told["selected"], told["total"]) == (len(offered), len(house().tools) - 1)


@pytest.mark.req("SEL-05")
async def test_core_tools_and_tools_that_are_gone_take_no_place_of_a_sticky_one() -> None:
    used = tuple(f"filer_{name}" for name in _HOUSE["filer"].split())[:9]
    chosen = await select("yes", sticky=(*CORE, "gone", *used))
    assert set(chosen.names()) == {*CORE, *used[:8]}


class Listening(AllAllowed):
    """Offers everything, and notes which tools were called sticky."""

    def __init__(self) -> None:
        self.sticky: list[tuple[str, ...]] = []

    async def select(self, ask: SelectionRequest) -> ToolSelection:
        self.sticky.append(ask.sticky)
        return await super().select(ask)


@pytest.mark.req("SEL-05")
async def test_the_tools_of_the_last_three_turns_stay_the_newest_first_and_over_a_restart(
    tmp_path: Path,
) -> None:
    tools = DictTools(**{f"t{number}": lambda _: "done" for number in range(12)})
    turns = [("t0",), ("t1",), ("t2",), ("t3", "t11"), ("t4", "t5", "t6", "t7"), ("t8", "t9", "t4", "t10")]
    heard = Listening()
    for number, used in enumerate([*turns, ()]):
        steps: list[Any] = [[(name, {"step": step})] for step, name in enumerate(used)]
        bench = Bench(tmp_path, ListedModel(*steps, "Fine."), tools)  # a new process each time
        bench.parts = replace(bench.parts, selector=heard)
        await bench.run(f"question {number}", message_id=f"msg_{number}")
    assert heard.sticky[0] == ()
    assert heard.sticky[4] == ("t11", "t3", "t2", "t1"), "the first turn is too long ago"
    assert heard.sticky[6] == ("t10", "t4", "t9", "t8", "t7", "t6", "t5", "t11", "t3"), "each once"


@pytest.mark.req("SEL-02", "SEL-05", "SEL-06")
async def test_the_cap_comes_after_sticky_and_playbook_tools() -> None:
    tools = house()
    everything = tuple(tool.name for tool in tools.tools)
    chosen = await select("what is the weather?", tools=tools, sticky=everything, playbook_tools=everything[::-1])
    assert len(chosen.tools) == 25
    assert set(CORE) <= set(chosen.names())


@pytest.mark.req("SEL-08")
async def test_a_tool_that_clearly_fits_calms_the_model() -> None:
    ask = SelectionRequest(brief("x"), "take a screenshot in the browser", house())
    clear = await selector(temperature=0.7).select(ask)
    assert clear.report is not None
    assert clear.report.top_score > 0.6
    assert clear.temperature == 0.3
    assert (await selector(temperature=0.1).select(ask)).temperature == 0.1
    vague = await select("I wonder about things")
    assert vague.report is not None
    assert vague.report.top_score < 0.6
    assert vague.temperature is None


@pytest.mark.req("SEL-08")
@pytest.mark.parametrize(("score", "temperature"), [(0.59, None), (0.6, None), (0.65, 0.3)])
async def test_the_model_is_asked_at_a_low_temperature_above_a_top_score_of_six_tenths(
    tmp_path: Path, rank_with: Callable[..., None], score: float, temperature: float | None
) -> None:
    rank_with(score, 0.1)
    bench = house_bench(tmp_path)
    await bench.run("xyzzy plugh")
    assert [request.temperature for request in bench.model.requests] == [temperature]


@pytest.mark.req("SEL-09")
async def test_a_selection_says_how_it_came_about(monkeypatch: pytest.MonkeyPatch) -> None:
    # Loading the vectors may take longer than a person would wait; here only the report counts.
    monkeypatch.setattr(ToolRanker.__init__, "__defaults__", (seconds(30),))
    chosen = await select("delete a file")
    report = chosen.report
    assert report is not None
    assert report.method == "hybrid"
    assert report.total == len(house().tools) - 1
    assert report.selected == len(chosen.tools) < report.total
    assert 0.97 < report.top_score <= 1
    assert report.cutoff == pytest.approx(0.85 * report.top_score)
    assert len(report.top) == 5
    assert report.top[0] == ("filer_delete_file", report.top_score)


@pytest.mark.req("SEL-02")
async def test_a_server_without_a_route_has_one_from_its_keywords() -> None:
    added = [spec(f"piano_tune_{n}", "piano", keywords=("Clavinova",)) for n in range(3)]
    chosen = await select("what is wrong with the clavinova?", vectors=False, tools=house(*added))
    assert {"piano_tune_0", "piano_tune_1", "piano_tune_2"} <= set(chosen.names())
    other = await select("is there anything new in my inbox", vectors=False, tools=house(*added))
    assert not any(name.startswith("piano_") for name in other.names())


@pytest.mark.req("SEL-02")
def test_no_group_names_a_tool_that_does_not_exist() -> None:
    """Neither an exact name nor a pattern. The docs have an example for every tool of a server."""
    known = {tool.name for tool in house().tools if tool.server == "hub"}
    known |= {f"{file.stem}_{name}" for file in _EXAMPLES.glob("*.json") for name in json.loads(file.read_text())}
    patterns = {pattern for patterns in load_packaged_routes().groups.values() for pattern in patterns}
    waiting = {"outlook_*", "memory_store_skill", "memory_list_skills", "memory_update_skill"}
    unknown = {pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in known)}
    assert unknown == waiting
    assert not patterns & {"create_job", "list_jobs", "delete_job"}


def test_every_route_leads_to_a_group_that_exists() -> None:
    file = load_packaged_routes()
    named = {group for groups in file.routes.values() for group in groups} | set(file.default)
    assert named <= file.groups.keys()


def test_the_words_of_every_language_belong_to_a_route_that_exists() -> None:
    english, *others = load_lexicon("selection").files
    assert set(english.names("routes")) == set(load_packaged_routes().routes)
    assert all(set(file.names("routes")) <= set(english.names("routes")) for file in others)


@pytest.mark.req("SEL-02")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Remind me every morning to drink", "memory_store_skill"),
        ("what do you know about me", "memory_list_facts"),
        ("go to example.com", "web_browser_navigate"),
        ("CODE review", "codexec_execute_code"),
        ("do I have free time tomorrow", "gmail_find_free_time"),
    ],
)
def test_words_lead_to_their_group(text: str, name: str) -> None:
    assert name in KeywordRoutes(house().tools).route(text).names


@settings(deadline=None, max_examples=150)
@given(
    core=st.lists(st.sampled_from([f"c{n}" for n in range(9)]), max_size=9, unique=True),
    forced=st.lists(st.sampled_from([f"t{n}" for n in range(60)]), max_size=60),
    scores=st.lists(st.floats(0, 1), max_size=60),
    routed=st.lists(st.sampled_from([f"t{n}" for n in range(60)]), max_size=60),
    matched=st.booleans(),
    cap=st.integers(5, 40),
    threshold=st.floats(0, 1),
)
@pytest.mark.req("SEL-02", "SEL-04")
def test_whatever_is_wanted_the_cap_holds_and_the_core_is_in(
    core: list[str],
    forced: list[str],
    scores: list[float],
    routed: list[str],
    matched: bool,
    cap: int,
    threshold: float,
) -> None:
    ranked = tuple(RankedTool(f"t{n}", score) for n, score in enumerate(sorted(scores, reverse=True)) if score > 0)
    claims = SelectionCandidates(
        core, forced, ToolRanking(ranked, "hybrid"), RoutedTools(tuple(dict.fromkeys(routed)), matched)
    )
    limits = SelectionLimits(threshold, 15, 5, cap)
    choice = choose_tools(claims, limits)
    assert len(choice.names) == len(set(choice.names)) <= cap
    assert list(choice.names[: len(core)]) == core[:cap]
    wanted = list(dict.fromkeys([*core, *forced]))
    assert list(choice.names[: len(wanted)]) == wanted[:cap]
    assert choice == choose_tools(claims, limits)


@pytest.mark.req("SEL-02", "SEL-09")
def test_first_come_core_tools_then_the_best_fifteen_then_what_only_words_name() -> None:
    ranked = tuple(RankedTool(f"t{n}", 0.9) for n in range(40))
    claims = SelectionCandidates(
        ("core",), ("sticky",), ToolRanking(ranked, "hybrid"), RoutedTools(("named",), matched=True)
    )
    wanted = ("core", "sticky", *(f"t{n}" for n in range(15)), "named")
    choice = choose_tools(claims, _LIMITS)
    assert choice.names == wanted
    assert [*dict.fromkeys(choice.reasons.values())] == ["core", "in use", "fits", "named group"]
    assert (
        choose_tools(claims, SelectionLimits(threshold=0.3, top_k=15, min_tools=5, max_tools=17)).names == wanted[:17]
    )


@pytest.mark.req("SEL-02")
def test_the_best_five_are_offered_even_when_they_fit_badly() -> None:
    ranked = (RankedTool("t0", 0.98), *(RankedTool(f"t{n}", 0.05) for n in range(1, 9)))
    claims = SelectionCandidates((), (), ToolRanking(ranked, "hybrid"), RoutedTools((), matched=False))
    assert choose_tools(claims, _LIMITS).names == ("t0", "t1", "t2", "t3", "t4")


@pytest.mark.req("SEL-02")
def test_unless_it_is_set_otherwise_these_are_the_limits_of_a_selection() -> None:
    usual = Settings()
    assert (usual.tool_selector_threshold, usual.tool_selector_top_k) == (0.3, 15)
    assert (usual.tool_selector_min_tools, usual.tool_selector_max_tools) == (5, 25)


@pytest.mark.req("SEL-02")
@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 7),
        ({"tool_selector_threshold": 0.2}, 13),
        ({"tool_selector_threshold": 0.1}, 15),
        ({"tool_selector_threshold": 0.1, "tool_selector_top_k": 10}, 10),
        ({"tool_selector_threshold": 0.6}, 5),
        ({"tool_selector_threshold": 0.6, "tool_selector_min_tools": 3}, 3),
        ({"tool_selector_max_tools": 10}, 3),
    ],
)
async def test_the_settings_decide_how_many_ranked_tools_are_selected(
    rank_with: Callable[..., None], changes: dict[str, float], count: int
) -> None:
    rank_with(0.98, *[0.9] * 6, *[0.7] * 6, *[0.45] * 12)
    text = "xyzzy plugh"
    chosen = await selector(**changes).select(SelectionRequest(brief(text), text, house()))
    assert set(chosen.names()) == {*CORE, *_OTHERS[:count]}


@pytest.mark.req("SEL-02")
@pytest.mark.parametrize(("top", "ranked", "named"), [(0.29, 5, 7), (0.31, 10, 5)])
def test_below_the_threshold_the_groups_that_words_name_count_more_than_the_ranking(
    top: float, ranked: int, named: int
) -> None:
    tools = tuple(RankedTool(f"t{n}", top) for n in range(10))
    group = tuple(f"named{n}" for n in range(7))
    claims = SelectionCandidates((), (), ToolRanking(tools, "hybrid"), RoutedTools(group, matched=True))
    assert choose_tools(claims, _LIMITS).names == (*(f"t{n}" for n in range(ranked)), *group[:named])


@pytest.mark.req("SEL-02", "SEL-03")
@pytest.mark.parametrize(("top", "offered"), [(0.29, True), (0.31, False)])
def test_the_default_groups_are_offered_below_the_threshold_only(top: float, offered: bool) -> None:
    ranking = ToolRanking((RankedTool("t0", top),), "hybrid")
    claims = SelectionCandidates((), (), ranking, RoutedTools(("search",), matched=False))
    assert ("search" in choose_tools(claims, _LIMITS).names) is offered


def test_fewer_tools_are_sent_when_one_stands_out_than_when_all_are_alike() -> None:
    def chosen(top: float, rest: float) -> int:
        ranked = (RankedTool("t", top), *(RankedTool(f"t{n}", rest) for n in range(40)))
        claims = SelectionCandidates((), (), ToolRanking(ranked, "hybrid"), RoutedTools((), matched=False))
        return len(choose_tools(claims, _LIMITS).names)

    assert chosen(0.98, 0.4) == 5
    assert chosen(0.35, 0.34) == 25


@pytest.mark.req("RTR-05")
def test_a_tool_that_was_looked_for_takes_the_place_of_the_least_wanted_one() -> None:
    tools = tuple(spec(f"t{n}") for n in range(6))
    full = ToolSelection(tools[:4], limit=4, others=tools[4:], wanted=("t2", "t0", "t1", "t3"))
    found = full.with_found(["t5", "unknown"])
    assert found.names() == ["t0", "t1", "t2", "t5"]
    assert [tool.name for tool in found.others] == ["t4", "t3"]
    assert full.with_found(["unknown"]) is full
    assert full.with_found(["t5", "t3"]).names() == ["t0", "t2", "t3", "t5"]  # t3 is called beside it
    roomy = ToolSelection(tools[:2], limit=4, others=tools[2:], wanted=("t0", "t1")).with_found(["t5", "t4"])
    assert roomy.names() == ["t0", "t1", "t5", "t4"]
