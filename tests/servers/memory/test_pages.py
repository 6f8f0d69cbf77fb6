"""Pages that people edit: what is written reads back as it was, and what is damaged is refused with its line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core.errors import InvalidArguments
from annabelle.servers.memory.arguments import clean_text
from annabelle.servers.memory.files.markdown import escape, read_page, unescape
from annabelle.servers.memory.files.pages import read_facts, read_profile, write_facts, write_profile
from annabelle.servers.memory.files.rows import FactLine, FactListingRow
from annabelle.servers.memory.profile_document import difference, merge_updates
from annabelle.store.memory.facts import Fact

AT = datetime(2026, 1, 31, tzinfo=UTC)
ODD = st.sampled_from(
    [
        "- a",
        "# b",
        "<!-- 1 trusted 00000000 -->",
        "&lt;",
        "&amp;lt;",
        "\\- c",
        "\\\\# d",
        "* ",
        "-->",
        "x\n\n  - y",
        "## z",
    ]
)
TEXT = (st.text(max_size=60) | st.lists(ODD | st.text(max_size=10), max_size=4).map("\n".join)).map(clean_text)
WORDS = TEXT.filter(bool)


def fact(number: int, text: str, category: str = "preference", trust: str = "trusted") -> Fact:
    return Fact(
        id=number,
        fact=text,
        about=None,
        category=category,  # pyright: ignore
        source="chat",
        confidence=1.0,
        trust=trust,  # pyright: ignore
        origin={},
        valid_from=AT,
        valid_until=None,
        created_at=AT,
        updated_at=AT,
        retired_at=None,
        retired_because=None,
        superseded_by=None,
        last_accessed_at=None,
    )


def page_of(*facts: Fact) -> str:
    groups = [(category, [one for one in facts if one.category == category]) for category in ("preference", "decision")]
    return "".join(write_facts(99, AT, "0" * 16, groups))


def lines_of(page: str) -> list[FactLine]:
    return [row for row in read_facts(read_page(page)) if isinstance(row, FactLine)]


@settings(deadline=None)
@given(WORDS)
def test_whatever_a_text_holds_it_is_itself_again(text: str) -> None:
    assert unescape(escape(text)) == text
    assert "<!--" not in escape(text)


@pytest.mark.req("MEM-08")
@settings(deadline=None)
@given(st.lists(WORDS.filter(lambda text: any(map(str.isalnum, text))), max_size=5))
def test_an_unedited_page_of_facts_says_what_was_exported(texts: list[str]) -> None:
    read = lines_of(page_of(*(fact(number, text) for number, text in enumerate(texts, 1))))
    assert [(row.id, " ".join(row.fact.split())) for row in read] == [
        (number, " ".join(text.split())) for number, text in enumerate(texts, 1)
    ]


def test_a_page_of_facts_can_be_edited_by_hand() -> None:
    page = page_of(
        fact(1, "likes tea"), fact(2, "likes\ntwo lines", trust="untrusted"), fact(3, "works late", "decision")
    )
    assert "- likes tea <!-- 1 trusted " in page
    edited = page.replace("- likes tea <!--", "- likes green tea <!--").replace(
        "## decision\n", "* new with a star\r\n\n## Decision\n\n+ new\twith a tab\n"
    )
    read = [(row.id, row.category, row.fact) for row in lines_of(edited)]
    assert read == [
        (1, "preference", "likes green tea"),
        (2, "preference", "likes two lines"),
        (None, "preference", "new with a star"),
        (None, "decision", "new with a tab"),
        (3, "decision", "works late"),
    ]
    listing = [row for row in read_facts(read_page(edited)) if isinstance(row, FactListingRow)]
    assert (listing[0].through, listing[0].at, listing[0].ids) == (99, AT, [1, 2, 3])
    assert lines_of("## preference\n- by hand alone\n") == [FactLine(fact="by hand alone", category="preference")]


def test_a_line_that_was_copied_and_changed_is_another_fact() -> None:
    page = page_of(fact(1, "likes tea"))
    line = next(one for one in page.splitlines() if one.startswith("- likes tea"))
    for edited in (f"{line.replace('tea', 'rum')}\n{line}", f"{line}\n{line.replace('tea', 'rum')}"):
        read = {row.fact: row.id for row in lines_of(page.replace(line, edited))}
        assert read == {"likes tea": 1, "likes rum": None}


@pytest.mark.parametrize(
    ("change", "line", "problem"),
    [
        (("## preference", "## likings"), 9, "no category 'likings'"),
        (("## preference", ""), 11, "stands in no section"),
        (("- likes tea", "likes tea"), 11, "belongs to nothing"),
        (("- likes tea", "### sub\n- likes tea"), 11, "heading of this level"),
        (("- likes tea", "- " + "x" * 2001), 11, "fact: String should have at most 2000"),
        (("likes tea <!-- 1 trusted", "likes tea <!-- 1 trus"), 11, "comment at its end is damaged"),
        (("- likes tea", "- a\n  - b\n- likes tea"), 12, "no bullets below"),
        (("<!-- end of facts -->", ""), 18, "ends before its last line"),
        (("through=99", "through=x"), 1, "comment at the top is damaged"),
        ((" -->\n- likes rum", " --> likes rum"), 11, "ran together"),
    ],
)
def test_what_can_not_be_understood_is_refused_with_its_line(change: tuple[str, str], line: int, problem: str) -> None:
    page = page_of(fact(1, "likes tea"), fact(2, "likes rum"))
    assert change[0] in page
    with pytest.raises(InvalidArguments, match=f"^Line {line} can not be imported: .*{problem}"):
        lines_of(page.replace(*change))


NAMES = st.text(min_size=1, max_size=12).map(lambda text: " ".join(clean_text(text).split())).filter(bool)
LEAVES = (
    TEXT.filter(bool)
    | st.integers(-(10**9), 10**9)
    | st.booleans()
    | st.lists(TEXT | st.integers(), min_size=1, max_size=3)
)
USERS = st.recursive(
    st.dictionaries(NAMES, LEAVES, min_size=1, max_size=4),
    lambda inside: st.dictionaries(NAMES, inside | LEAVES, min_size=1, max_size=3),
    max_leaves=6,
)
PERSONAS = st.fixed_dictionaries(
    {},
    optional={
        "name": NAMES,
        "tone": WORDS,
        "system_prompt": WORDS,
        "capabilities": st.lists(WORDS, min_size=1, max_size=3),
    },
)


@pytest.mark.req("MEM-08", "CTX-08")
@settings(deadline=None)
@given(USERS, PERSONAS)
def test_a_profile_reads_back_from_its_page_as_it_was(user: dict[str, object], persona: dict[str, object]) -> None:
    content: dict[str, object] = {"user": user} | ({"persona": persona} if persona else {})
    row = read_profile(read_page(write_profile(content, 7)))
    assert row.content == content
    assert row.version == 7


@pytest.mark.req("CTX-06")
def test_a_profile_can_be_written_by_hand() -> None:
    page = """# Profile
## Persona
- Name: 007
- system prompt: Be kind.

  Always:
  - say hello
  - say why
- proactive-behaviors:
  - remind me of tea
- tone:
## About the user
- city: Lisbon
- age: 36
- pets:
  - cat: Mia
- likes:
  - tea
  - rain
"""
    assert read_profile(read_page(page)).content == {
        "persona": {
            "name": "007",
            "system_prompt": "Be kind.\n\nAlways:\n- say hello\n- say why",
            "proactive_behaviours": ["remind me of tea"],
        },
        "user": {"city": "Lisbon", "age": 36, "pets": {"cat": "Mia"}, "likes": ["tea", "rain"]},
    }


@settings(deadline=None)
@given(USERS, USERS)
def test_a_difference_leads_from_one_profile_to_the_other(before: dict[str, object], after: dict[str, object]) -> None:
    assert merge_updates(before, difference(before, after)) == after
    assert difference(after, after) == {}
