"""The parts a search is made of: questions taken apart, where turns stand, and how scores come together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, strategies as st

from annabelle.servers.memory.search.query import NamedDate, choose_rare, find_dates, parse_query
from annabelle.servers.memory.search.scores import (
    CONFIDENCE,
    RECENCY,
    SearchCandidates,
    SearchWeights,
    fuse,
    neighbour_score,
    recency,
    with_neighbours,
)
from annabelle.servers.memory.search.search import READ_AT_MOST
from annabelle.servers.memory.search.turn_index import TurnIndex
from annabelle.servers.memory.search.vectors import OwnerVectors
from annabelle.store.memory.conversations import ConversationPosition
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import SearchTerm
from annabelle.store.memory.vectors import MOST_PIECES, split_passages

NOW = datetime(2026, 5, 8, 12, tzinfo=UTC)
ADA = Owner("ada", "annabelle")


def place(number: int, session: str = "one", speaker: str = "", *, asks: bool = False) -> ConversationPosition:
    return ConversationPosition(number, ADA, session, speaker, NOW + timedelta(minutes=number), asks)


@pytest.mark.incident("I-30")
def test_the_vectors_of_each_owner_and_kind_are_looked_at_and_dropped_by_themselves() -> None:
    bob, vector = Owner("bob", "annabelle"), np.asarray([1, 0], np.float32)
    found = OwnerVectors()
    found.put("fact", ADA, 1, vector)
    found.put("fact", bob, 2, vector)
    found.put("conversation", bob, 3, vector)
    assert found.nearest("fact", bob, vector, 10) == {2: 1.0}
    assert found.nearest("conversation", bob, vector, 10) == {3: 1.0}
    assert found.nearest("conversation", ADA, vector, 10) == {}
    assert found.scores("fact", ADA, vector, [1, 2]) == {1: 1.0, 2: 0.0}
    found.drop("fact", ADA, [2])
    assert found.nearest("fact", bob, vector, 10) == {2: 1.0}
    found.drop("fact", bob, [2])
    assert [found.count("fact", owner) for owner in (ADA, bob)] == [1, 0]
    assert found.nearest("fact", bob, vector, 10) == {}


def test_a_question_is_asked_by_its_telling_words() -> None:
    asked = parse_query("What did Mel paint after the hike?")
    assert asked.words == ("mel", "paint", "after", "hike")
    assert asked.meaning == "Mel paint after hike"


@pytest.mark.req("MEM-10")
def test_the_name_of_a_speaker_says_who_spoke_and_is_no_word_to_look_for() -> None:
    asked = parse_query("When did Caroline's sister go hiking?", {"caroline", "mel"})
    assert asked.speakers == {"caroline"}
    assert asked.words == ("sister", "go", "hiking")
    assert "aroline" not in asked.meaning


@pytest.mark.parametrize("text", ["what is the", "?!", "", "\x00", "Caroline"])
def test_a_question_of_nothing_but_common_words_is_asked_as_it_is(text: str) -> None:
    asked = parse_query(text, {"caroline"})
    assert asked.meaning == text
    assert bool(asked.words) == any(letter.isalnum() for letter in text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What happened on 8 May, 2023?", (NamedDate(2023, 5, 8),)),
        ("on May 8th, 2023", (NamedDate(2023, 5, 8),)),
        ("in 2023-05", (NamedDate(2023, 5),)),
        ("since 2023-05-08", (NamedDate(2023, 5, 8),)),
        ("Where were we in March?", (NamedDate(None, 3),)),
        ("in the autumn of 2022", (NamedDate(2022),)),
        ("the 3rd of june", (NamedDate(None, 6, 3),)),
        ("May I ask who will march on?", ()),
        ("a room of 2023 chairs 45", (NamedDate(2023),)),
        ("nothing", ()),
        ("2023-99-99", (NamedDate(2023, 99, 99),)),
    ],
)
def test_dates_are_read_from_a_question(text: str, found: tuple[NamedDate, ...]) -> None:
    assert find_dates(text) == found


def test_a_date_holds_the_moments_it_names() -> None:
    assert NOW in NamedDate(2026, 5)
    assert NOW in NamedDate(None, 5, 8)
    assert NOW not in NamedDate(2025, 5)
    assert NOW not in NamedDate(2026, 99, 99)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from("abc"), st.booleans()), max_size=60),
)
def test_neighbours_are_those_of_the_session_however_turns_come_and_go(steps: list[tuple[int, str, bool]]) -> None:
    turns, kept = TurnIndex(), dict[int, str]()
    for number, session, comes in steps:
        if comes and number not in kept:
            kept[number] = session
            turns.add(place(number, session))
        elif not comes:
            kept.pop(number, None)
            turns.drop([number])
    assert len(turns) == len(kept)
    for number, session in kept.items():
        same = sorted(other for other, where in kept.items() if where == session)
        at = same.index(number)
        stands = turns.get(number)
        assert stands is not None
        assert stands.before == (same[at - 1] if at else 0)
        assert stands.after == (same[at + 1] if at + 1 < len(same) else 0)


def test_a_turn_that_nobody_knows_stands_nowhere() -> None:
    turns = TurnIndex()
    turns.drop([7])
    assert turns.get(7) is None


def test_speakers_are_known_by_each_of_their_names_but_roles_are_no_names() -> None:
    turns = TurnIndex()
    for number, speaker in enumerate(("Anna Berg", "user", "", "Anna", "José"), 1):
        turns.add(place(number, speaker=speaker))
    assert turns.named.keys() == {"anna", "berg", "jose"}
    assert len(turns.named["anna"]) == 2


@pytest.mark.req("MEM-03")
def test_the_best_of_each_part_counts_as_one_and_a_cosine_below_zero_as_nothing() -> None:
    fused = fuse({1: 0.4, 2: -0.3, 3: 0.2}, {3: 7.0, 4: 3.5}, SearchWeights(0.5, 0.5))
    assert fused == {1: 0.5, 2: 0.0, 3: 0.75, 4: 0.25}
    assert fuse(None, {3: 7.0, 4: 3.5}, SearchWeights()) == {3: 1.0, 4: 0.5}
    assert fuse({1: 0.0}, {}, SearchWeights()) == {}
    assert fuse(None, {}, SearchWeights()) == {}
    assert SearchWeights(0, 0).shares() == (0.5, 0.5)
    assert SearchWeights(1, 0).shares() == (1, 0)


@pytest.mark.req("MEM-10")
@pytest.mark.req("MEM-03", "MEM-10")
def test_an_answer_gains_from_the_question_before_it() -> None:
    turns = TurnIndex()
    for number in (1, 2, 3):
        turns.add(place(number, asks=number == 1))
    own = {1: 1.0}
    standing = with_neighbours(SearchCandidates("hybrid", own, {}), turns)
    assert standing.keys() == {1, 2, 3}
    assert neighbour_score(2, own, standing) > neighbour_score(3, own, standing) > 0
    assert neighbour_score(1, own, standing) == 0


def test_priors_order_equals_and_bury_nothing() -> None:
    assert RECENCY + CONFIDENCE < 0.1
    at, day = NOW.timestamp(), 86_400
    assert recency(at, at) == recency(at + 900 * day, at) == 1
    assert 0.4 < recency(at - 30 * day, at) < 0.6
    assert recency(datetime(1, 1, 1, tzinfo=UTC).timestamp(), at) == pytest.approx(0)


def test_common_words_are_left_out_of_a_large_memory_and_never_all_of_them() -> None:
    rare, common = SearchTerm("zebra", 3), SearchTerm("user", READ_AT_MOST)
    assert choose_rare([common, rare, SearchTerm("missing", 0)], READ_AT_MOST, 1) == [rare]
    assert choose_rare([common], READ_AT_MOST, 1) == [common]
    assert choose_rare([SearchTerm("a", 3), SearchTerm("b", 2)], READ_AT_MOST, 1) == [
        SearchTerm("b", 2),
        SearchTerm("a", 3),
    ]


@given(st.text(max_size=3000))
def test_passages_are_few_and_hold_the_whole_text(text: str) -> None:
    pieces = split_passages("conversation", text)
    assert 1 <= len(pieces) <= MOST_PIECES
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert split_passages("fact", text) == [text]


def test_a_very_long_text_is_read_from_its_beginning() -> None:
    pieces = split_passages("conversation", "One more sentence here. " * 50_000)
    assert len(pieces) <= MOST_PIECES
    assert sum(map(len, pieces)) <= 20_000
