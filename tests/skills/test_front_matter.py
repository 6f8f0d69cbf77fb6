"""The top of a Markdown file: read as it was meant, or refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from annabelle.skills.playbook import FrontMatterMistake, PlaybookMistake, parse_front_matter, parse_playbook

WHOLE = """\ufeff---
# how to look after plants
name: gardening
description: "Water, weed: and wait"   # quoted for the colon
priority: 12
keywords: [rose, 'it''s dry', "a, b", what's wilting]
required_tools:
  - filer_read_file
- "filer_create_file"
servers: []
---

Water at night.

---
Not a fence any more.
"""


@pytest.mark.req("PLB-01")
def test_every_way_to_write_a_value_is_read() -> None:
    playbook = parse_playbook(WHOLE, "other")
    assert (playbook.name, playbook.priority) == ("gardening", 12)
    assert playbook.description == "Water, weed: and wait"
    assert playbook.keywords == ("rose", "it's dry", "a, b", "what's wilting")
    assert playbook.required_tools == ("filer_read_file", "filer_create_file")
    assert playbook.instructions == "Water at night.\n\n---\nNot a fence any more."
    bare = parse_playbook("---\r\nkeywords: [x]\r\n---\r\nDo it.\r\n", "plain")
    assert (bare.name, bare.priority, bare.instructions) == ("plain", 0, "Do it.")


@pytest.mark.req("PLB-02")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: the file does not begin"),
        ("Just text.", "line 1: the file does not begin"),
        ("---\nname: x\n", "not closed with"),
        ("---\nname x\n---\n", "line 2: expected"),
        ("---\nname: x\nname: y\n---\n", "line 3: name is there twice"),
        ("---\nname: {a: b}\n---\n", "line 2: put the value in quotes"),
        ("---\nname: |\n  long\n---\n", "line 2: put the value in quotes"),
        ('---\nname: "open\n---\n', "line 2: the quotes do not match"),
        ("---\nkeywords: [a, b\n---\n", "line 2: the list is not closed"),
        ("---\nkeyword: [a]\n---\nDo.", "keyword is not known; known are"),
        ("---\nkeywords: a\n---\nDo.", "keywords is to be a list"),
        ("---\nname:\nkeywords: [a]\n---\nDo.", "name has no value"),
        ("---\nname: a/b\nkeywords: [a]\n---\nDo.", "other signs than letters"),
        ("---\nkeywords: [a]\npriority: high\n---\nDo.", "priority is to be a number from 0 to 100"),
        ("---\nkeywords: [a]\npriority: 101\n---\nDo.", "priority is to be a number from 0 to 100"),
        ("---\nkeywords: [a]\npriority: ²\n---\nDo.", "priority is to be a number"),
        ('---\nkeywords: ["?!"]\n---\nDo.', "it has no keywords"),
        ("---\nkeywords: [a]\n---\n\n", "it has no instructions"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(PlaybookMistake, match=said):
        parse_playbook(text, "plain")


@given(st.text(alphabet=st.sampled_from("-: \n[]\"'#,ab\\\t\r\x00é"), max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\nbody"):
        try:
            document = parse_front_matter(whole)
        except FrontMatterMistake as mistake:
            assert str(mistake).startswith("line ")  # noqa: PT017
        else:
            assert not set(document.values) & set(document.lists)
