"""Earlier conversations come back: the latest summaries, those that have to do with the message, and by search."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from annabelle.core.errors import InvalidArguments
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.embeddings import EmbeddingConfig, EmbeddingsUnavailable, ModelName, make_embedder
from annabelle.thinker.session.archive_search import extract_words, parse_timeframe, word_overlap
from annabelle.thinker.session.file_store import FileSessionStore
from annabelle.thinker.session.session_store import ConversationEnd
from thinker.talks import THREAD, MakeStore, Talk, make_store, turn
from thinker.test_archive import MODEL, ago, ended, viewed

__all__ = ["make_store"]


def no_embedder() -> object:
    return make_embedder(EmbeddingConfig(provider="none", model=""), None)


@pytest.mark.req("SES-04")
async def test_the_last_five_summaries_stand_in_context_with_their_day_the_latest_last(
    make_store: MakeStore, tmp_path: Path
) -> None:
    talk = Talk(make_store(), MODEL, tmp_path, user_timezone="UTC")
    for number in range(7):
        await ended(talk.store, number, f"Summary {number}.", datetime(2026, 5, 1 + number, 12, tzinfo=UTC))
    assert (await viewed(talk, "zzz")).summaries == [f"{1 + n} May 2026: Summary {n}." for n in range(2, 7)]
    assert (await viewed(talk, "zzz", user_id="bob")).summaries == ()


TOPICS = ("The garden needs new roses and a hedge", "The car has a broken gearbox and needs repair")


@pytest.mark.req("SES-06")
@pytest.mark.parametrize("vectors", [True, False])
async def test_older_conversations_that_have_to_do_with_the_message_come_back(
    make_store: MakeStore, tmp_path: Path, vectors: bool
) -> None:
    embedder = make_embedder(EmbeddingConfig(), None) if vectors else no_embedder()
    talk = Talk(make_store(), MODEL, tmp_path, embedder=embedder)  # type: ignore[arg-type]
    summaries = [*TOPICS, *(f"They spoke of tax form {number}" for number in range(5))]
    for number, summary in enumerate(summaries):
        await ended(talk.store, number, summary, ago(days=20 - number))
    found = [
        text.partition(": ")[2] for text in (await viewed(talk, "Did the gearbox of the car get repaired?")).summaries
    ]
    assert found == summaries[1:]
    found = [text.partition(": ")[2] for text in (await viewed(talk, "xqzt vlpw")).summaries]
    assert found == summaries[2:]


class WrongVectors:
    """A server whose vectors change their length."""

    def __init__(self) -> None:
        self.length = 3

    @property
    def model(self) -> ModelName:
        return ModelName("test", "wrong")

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        self.length += 1
        if self.length > 6:
            raise EmbeddingsUnavailable("It answers something else.")
        return np.ones((len(texts), self.length), dtype=np.float32)

    async def close(self) -> None: ...


@pytest.mark.req("SES-06")
async def test_vectors_of_another_length_or_none_at_all_are_no_trouble(tmp_path: Path) -> None:
    talk = Talk(FileSessionStore(tmp_path / "s", "tess"), MODEL, tmp_path, embedder=WrongVectors())
    for number in range(7):
        await ended(talk.store, number, f"Summary {number}.", ago(days=20 - number))
    for _ in range(3):
        assert len((await viewed(talk, "Summary?")).summaries) == 5


async def searched(talk: Talk, user_id: str = "owner", **arguments: object) -> list[JsonObject]:
    (tool,) = (await viewed(talk, user_id=user_id)).local_tools
    result = await tool.call(arguments)
    assert not result.is_error, result.text
    assert result.structured is not None
    return cast("list[JsonObject]", result.structured["sessions"])


@pytest.mark.req("SES-04")
async def test_history_is_searched_by_words_and_days_within_one_thread(make_store: MakeStore, tmp_path: Path) -> None:
    talk = Talk(make_store(), MODEL, tmp_path, embedder=no_embedder())  # type: ignore[arg-type]
    await ended(talk.store, 0, "They talked of wine.", ago(days=100), f"{'so ' * 300}the Barolo of 1999 {'was ' * 300}")
    for number in range(1, 8):
        await ended(talk.store, number, f"A talk of bread {number}.", ago(days=8 - number), "How long must dough rest?")
    await talk.store.append("thr_two", turn(50, said="Barolo is mine"))
    await talk.store.archive("thr_two", ConversationEnd("msg_50", "manual", "Another's Barolo."))

    (wine,) = await searched(talk, query="which Barolo did I like?", timeframe="all")
    assert wine["summary"] == "They talked of wine."
    (excerpt,) = cast("list[str]", wine["excerpts"])
    assert "Barolo of 1999" in excerpt
    assert len(excerpt) < 300
    assert await searched(talk, query="Barolo", timeframe="week") == []
    assert [one["summary"] for one in await searched(talk, query="dough")] == [
        f"A talk of bread {number}." for number in (7, 6, 5, 4, 3)
    ]
    assert [one["summary"] for one in await searched(talk, query="dough", timeframe="yesterday")] == [
        "A talk of bread 7."
    ]
    assert [one["summary"] for one in await searched(talk, query="")] == [
        f"A talk of bread {number}." for number in (7, 6, 5, 4, 3)
    ], "without words the latest"
    day = ago(days=100).date().isoformat()
    assert [one["summary"] for one in await searched(talk, query="", timeframe=day)] == ["They talked of wine."]


@pytest.mark.req("SES-04")
async def test_a_search_finds_what_was_said_with_the_same_person_only(make_store: MakeStore, tmp_path: Path) -> None:
    talk = Talk(make_store(), MODEL, tmp_path)
    await ended(talk.store, 0, "They talked of wine.", ago(days=2))
    await talk.store.append(THREAD, turn(1).model_copy(update={"user_id": "bob"}))
    await talk.store.archive(THREAD, ConversationEnd("msg_1", "manual", "They talked of beer."))
    assert [one["summary"] for one in await searched(talk, query="")] == ["They talked of wine."]
    assert [one["summary"] for one in await searched(talk, "bob", query="")] == ["They talked of beer."]


@pytest.mark.req("SES-04")
async def test_a_search_that_makes_no_sense_is_told_so(tmp_path: Path) -> None:
    talk = Talk(FileSessionStore(tmp_path / "s", "tess"), MODEL, tmp_path)
    await ended(talk.store, 0, "They talked.", now())
    (tool,) = (await viewed(talk)).local_tools
    for arguments in ({"query": 7}, {"query": "x", "timeframe": "the other day"}, {"query": "x", "timeframe": ["all"]}):
        result = await tool.call(cast("JsonObject", arguments))
        assert result.is_error
        assert result.error is not None
        assert result.error.code == "invalid_arguments"
    assert "No earlier conversation" in (await tool.call({"query": "zzz"})).text


TODAY = date(2026, 5, 20)


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("", None, None), ("ALL", None, None), ("today", "2026-05-20", "2026-05-20"),
        ("yesterday", "2026-05-19", "2026-05-19"), ("week", "2026-05-13", "2026-05-20"),
        ("month", "2026-04-19", "2026-05-20"), ("2026-05-03", "2026-05-03", "2026-05-03"),
        ("2026-05-03..2026-05-01", "2026-05-01", "2026-05-03"),
        ("2026-05-01 to 2026-05-03", "2026-05-01", "2026-05-03"),
        ("2026-05-01/", "2026-05-01", None), ("2026-05-03T10:00:00Z", "2026-05-03", "2026-05-03"),
    ],
)  # fmt: skip
def test_days_are_what_people_call_them(asked: str, first: str | None, last: str | None) -> None:
    found = parse_timeframe(asked, TODAY)
    assert (found.first and found.first.isoformat(), found.last and found.last.isoformat()) == (first, last)


@pytest.mark.req("SES-04")
@pytest.mark.parametrize(
    ("zone", "days"), [("Europe/Berlin", ["2026-05-19", "2026-05-20"]), ("Pacific/Auckland", ["2026-05-20"])]
)
def test_a_conversation_over_midnight_is_found_on_both_of_its_days_where_the_user_lives(
    zone: str, days: list[str]
) -> None:
    began, over = datetime(2026, 5, 19, 20, tzinfo=UTC), datetime(2026, 5, 20, 1, tzinfo=UTC)
    asked = [f"2026-05-{day}" for day in range(18, 22)]
    assert [day for day in asked if parse_timeframe(day, TODAY).overlaps(began, over, ZoneInfo(zone))] == days


@given(st.text(max_size=40))
def test_any_timeframe_is_understood_or_refused(asked: str) -> None:
    with contextlib.suppress(InvalidArguments):
        assert parse_timeframe(asked, TODAY).overlaps(datetime.now(UTC), datetime.now(UTC), UTC) in (True, False)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_has_words_and_a_share_between_none_and_all(asked: str, text: str) -> None:
    assert 0 <= word_overlap(extract_words(asked), text) <= 1
    assert word_overlap(extract_words(asked), asked) in (0, 1)


@pytest.mark.req("SES-06")
async def test_of_a_very_long_message_only_its_beginning_is_looked_for(make_store: MakeStore, tmp_path: Path) -> None:
    talk = Talk(make_store(), MODEL, tmp_path, embedder=no_embedder())  # type: ignore[arg-type]
    for number, summary in enumerate([*TOPICS, *(f"They spoke of tax form {number}" for number in range(5))]):
        await ended(talk.store, number, summary, ago(days=20 - number))
    first = (await viewed(talk, "broken gearbox, needs repair " + "word " * 400_000)).summaries
    last = (await viewed(talk, "word " * 400_000 + "broken gearbox, needs repair")).summaries
    assert (len(first), len(last)) == (6, 5)
