"""Ranking tools: words, other languages, meaning; and what happens when the vectors do not come."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from annabelle.core.contract import ToolList
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.embeddings import EmbeddingConfig, EmbeddingsUnavailable, ModelName, make_embedder
from annabelle.toolbox.ranking import ToolRanker
from annabelle.toolbox.ranking.index import WordEvidence
from annabelle.toolbox.ranking.ranker import fuse_scores
from annabelle.toolbox.ranking.vectors import MeaningScores
from annabelle.toolbox.ranking.words import fold_text, split_words, stem


def spec(name: str, description: str, server: str = "house", **parameters: str) -> ToolSpec:
    properties: JsonObject = {key: {"type": "string", "description": said} for key, said in parameters.items()}
    return ToolSpec(
        name=f"{server}_{name}",
        server=server,
        original_name=name,
        description=f"[{server.title()} | {server}] {description}",
        input_schema={"type": "object", "properties": properties},
    )


HOUSE = ToolList(
    version="1",
    tools=(
        spec("list_files", "List the files in a folder.", path="The folder"),
        spec("send_email", "Send an email.", to="Who gets it", subject="What it is about"),
        spec("createEvent", "Put a meeting into the calendar.", start="When it begins"),
        spec("get_forecast", "The weather of the next days.", city="Where"),
        spec("run_code", "Run Python code in a sandbox.", code="What to run"),
        spec("lookup", "Nothing says what it does.", passport_number="The number of the passport"),
    ),
)


class Slow:
    """An embedder whose server never answers."""

    model = ModelName("compatible", "slow")

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        await asyncio.Event().wait()
        raise AssertionError("it never answers")

    async def close(self) -> None: ...


class Fickle:
    """An embedder whose vectors change their length: a server that was given another model."""

    model = ModelName("compatible", "fickle")

    def __init__(self, for_tools: int, for_messages: int) -> None:
        self._sizes = for_tools, for_messages

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        return np.full((len(texts), self._sizes[query]), np.nan if self._sizes[query] == 7 else 0.1, np.float32)

    async def close(self) -> None: ...


class Absent:
    model = ModelName("none", "")

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        raise EmbeddingsUnavailable("Embeddings are switched off.")

    async def close(self) -> None: ...


class Pointing:
    """An embedder for which every message is nearer to the email tool than to the others."""

    model = ModelName("compatible", "pointing")

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        vectors = [[0.8, 0.6] if query else [1, 0] if "email" in text else [0, 1] for text in texts]
        return np.asarray(vectors, np.float32)

    async def close(self) -> None: ...


async def first(ranker: ToolRanker, text: str) -> str:
    return (await ranker.rank(HOUSE, text)).tools[0].name


_EVIDENCE = ("words", "concepts", "whole", "part", "name", "near")


@pytest.fixture
def packaged() -> ToolRanker:
    return ToolRanker(make_embedder(EmbeddingConfig(), None), timeout_seconds=60)


@pytest.mark.req("SEL-10")
async def test_meaning_ranks_where_no_word_fits_and_words_rank_beside_it() -> None:
    pointing, words = ToolRanker(Pointing()), ToolRanker(Absent())
    assert (await words.rank(HOUSE, "qwyx vorpal")).tools == ()
    assert await first(pointing, "qwyx vorpal") == "house_send_email"
    both = await pointing.rank(HOUSE, "list the files in the folder")
    assert [tool.name for tool in both.tools[:2]] == ["house_send_email", "house_list_files"]


@pytest.mark.req("SEL-10")
@pytest.mark.parametrize("part", _EVIDENCE)
def test_each_kind_of_evidence_counts_beside_the_others(part: str) -> None:
    even, second = np.full(3, 0.5, np.float32), np.array([0.2, 0.9, 0.1], np.float32)
    scores = {name: second if name == part else even for name in _EVIDENCE}
    evidence = WordEvidence(scores["words"], scores["concepts"], elsewhere=False, asked=1.0)
    fused = fuse_scores(evidence, MeaningScores(scores["whole"], scores["part"], scores["name"], scores["near"]))
    assert fused.order.tolist() == [1, 0, 2]


@pytest.mark.req("SEL-02")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("show me what is in my directory", "house_list_files"),
        ("write a mail to Ada", "house_send_email"),
        ("schedule an appointment with the dentist", "house_createEvent"),
        ("do I need an umbrella?", "house_get_forecast"),
        ("execute this script", "house_run_code"),
        ("my passport", "house_lookup"),
        ("jaka będzie pogoda?", "house_get_forecast"),
        ("明天天气怎么样", "house_get_forecast"),
        ("Schick eine E-Mail an Anna", "house_send_email"),
        ("jakie mam spotkania jutro", "house_createEvent"),
    ],
)
async def test_the_tool_a_message_means_comes_first(packaged: ToolRanker, text: str, name: str) -> None:
    ranking = await packaged.rank(HOUSE, text)
    assert ranking.method == "hybrid"
    assert ranking.tools[0].name == name
    assert all(0 <= tool.score <= 1 for tool in ranking.tools)


@pytest.mark.req("SEL-03")
@pytest.mark.parametrize("embedder", [Absent(), Slow(), Fickle(8, 9)])
async def test_without_usable_vectors_words_rank_alone(embedder: Absent) -> None:
    ranker = ToolRanker(embedder, timeout_seconds=0.05)
    ranking = await ranker.rank(HOUSE, "send an email")
    assert (ranking.method, ranking.tools[0].name) == ("words", "house_send_email")


async def test_numbers_that_are_none_do_not_spread() -> None:
    ranking = await ToolRanker(Fickle(7, 7)).rank(HOUSE, "send an email")
    assert ranking.tools[0].name == "house_send_email"
    assert all(np.isfinite(tool.score) for tool in ranking.tools)


@pytest.mark.req("SEL-07")
async def test_the_vectors_of_tools_are_made_once_per_list() -> None:
    asked: list[int] = []

    class Counting(Fickle):
        async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
            if not query:
                asked.append(len(texts))
            return await super().embed(texts, query=query)

    ranker = ToolRanker(Counting(8, 8))
    for text in ("send an email", "list files", "weather"):
        await ranker.rank(HOUSE, text)
    assert len(asked) == 1
    await ranker.rank(HOUSE.model_copy(update={"version": "2"}), "send an email")
    assert len(asked) == 2


async def test_vectors_that_come_late_serve_the_next_message() -> None:
    gate = asyncio.Event()

    class Late(Fickle):
        async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
            await gate.wait()
            return await super().embed(texts, query=query)

    ranker = ToolRanker(Late(8, 8), timeout_seconds=0.05)
    assert (await ranker.rank(HOUSE, "send an email")).method == "words"
    gate.set()
    assert (await ranker.rank(HOUSE, "send an email")).method == "hybrid"


async def test_nothing_in_common_finds_nothing_by_words() -> None:
    assert (await ToolRanker(Absent()).rank(HOUSE, "xyzzy")).tools == ()
    assert (await ToolRanker(Absent()).rank(ToolList(version="0", tools=()), "mail")).tools == ()


@settings(deadline=None, max_examples=60)
@given(text=st.text(max_size=300))
def test_any_text_can_be_ranked(text: str) -> None:
    ranking = asyncio.run(ToolRanker(Absent()).rank(HOUSE, text))
    assert all(0 <= tool.score <= 1 for tool in ranking.tools)


@pytest.mark.parametrize(
    "text", ["mail " * 400_000, "\u200b".join("send mail"), "\u202email\u202c", "a" * 2_000_000, "é" * 50_000, "\ud800"]
)
async def test_hostile_text_is_bounded(packaged: ToolRanker, text: str) -> None:
    assert (await packaged.rank(HOUSE, text)).method == "hybrid"


def test_names_are_split_where_their_words_meet() -> None:
    assert split_words("getUserInfo_v2 HTTPServer") == [
        "get", "user", "info", "getuserinfo", "v", "2", "http", "server", "httpserver",
    ]  # fmt: skip
    assert "github" in split_words("GitHub")


def test_what_is_not_seen_does_not_hide_a_word() -> None:
    assert fold_text("ma\u200bil \u202ełódź") == "mail lodz"


@pytest.mark.parametrize(("one", "other"), [("files", "file"), ("calculating", "calculate"), ("meetings", "meeting")])
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)
