"""A text is cut where a reader would, and every part fits."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from annabelle.channels.message_parts import split_markdown

pytestmark = pytest.mark.req("CHN-05")


def test_two_paragraphs_share_a_message_exactly_as_long_as_they_fit() -> None:
    for longest, parts in ((12, ["first\n\nnext."]), (11, ["first", "next."])):
        assert split_markdown("first\n\nnext.", longest) == parts


@pytest.mark.parametrize(("text", "parts"), [
    ("one two three", ["one two", "three"]),
    ("one\nfour seven", ["one\nfour", "seven"]),
    ("onetwothree", ["onetwoth", "ree"]),
    ("", []),
    ("\n\n  \n", []),
])  # fmt: skip
def test_a_long_paragraph_is_cut_between_lines_or_words_and_only_then_within_one(text: str, parts: list[str]) -> None:
    assert split_markdown(text, 8) == parts


def test_code_is_whole_code_on_both_sides_of_a_cut() -> None:
    lines = [f"line {number}" for number in range(30)]
    parts = split_markdown("\n".join(["Look:", "", "~~~python", *lines, "~~~", "", "Done."]), 100)
    code = parts[1:-1]
    assert (parts[0], len(code) > 1) == ("Look:", True)
    assert all(part.startswith("~~~python\n") and part.endswith("\n~~~") for part in code[:-1])
    shown = [line for part in parts for line in part.splitlines() if line.startswith("line")]
    assert shown == lines


@pytest.mark.parametrize("closing", ["```", "`````"])
def test_blank_lines_of_code_stay_and_no_fence_is_added(closing: str) -> None:
    lines = ["", "", *(f"line {number}\n\n" for number in range(12))]
    text = "\n".join(["```", *lines, closing])
    parts = split_markdown(text, 40)
    assert len(parts) > 2
    inside = [line for part in parts for line in part.splitlines()[1:-1]]
    assert inside == text.splitlines()[1:-1]


_marks = st.sampled_from(["a word ", "\n", "\n\n", "```\n", "```py\n", "~~~\n", "- ", " "])
_paragraphs = st.integers(1, 150).map(lambda length: "x" * length + "\n\n")


@given(st.lists(_marks | _paragraphs, max_size=60).map("".join), st.integers(100, 200))
def test_every_part_fits_and_nothing_is_lost(text: str, longest: int) -> None:
    parts = split_markdown(text, longest)
    assert [len(part) for part in parts if len(part) > longest or not part] == []
    assert sum(part.count("x") for part in parts) == text.count("x")
