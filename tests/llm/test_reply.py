"""What is made of what the packaged model wrote: a call whose values were said, or words."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import TextPart, ToolCallPart

from annabelle.core.tools import ToolSpec
from annabelle.llm.embedded.reply import NOT_KNOWN, GivenValues, is_said, read_reply
from annabelle.llm.types import FROM_MEMORY

READ = ToolSpec(
    name="filer_read_file",
    server="filer",
    original_name="read_file",
    description="Read a file.",
    input_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path of the file, relative to the workspace."},
            "offset": {"type": "integer"},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)


@pytest.mark.req("FST-01")
@pytest.mark.parametrize(
    "written",
    [
        'filer_read_file {"path": "secret.txt"}',  # not said
        "filer_read_file {}",
        'filer_read_file {"path": 7}',
        'filer_read_file {"path": ',
        "filer_read_file",
        '{"tool": "x"}',
        "<tool_call>",
        'filer_look_at {"path": "a"}',
        "",
    ],
)
def test_a_call_that_does_not_fit_or_invents_a_value_is_asked_about_in_words(written: str) -> None:
    reply = read_reply(written, [READ], "read the file")
    assert isinstance(reply, TextPart)
    assert reply.content
    assert not any(sign in reply.content for sign in ("filer_read_file", "{", "<"))


@pytest.mark.req("FST-01")
@pytest.mark.parametrize(
    ("value", "said", "is_there"),
    [
        ("2360 * 0.175", "whats 17.5% of 2360", True),
        (1250, "How much is $1,250?", True),
        (10.0, "ten of 10 please", True),
        ("2360 * 0.19", "whats 17.5% of 2360", False),
        (["Lima", "Oslo"], "what time is it in lima and Oslo", True),
        (["Lima", "Rome"], "what time is it in lima and Oslo", False),
        ("anna@example.org", "write to anna@example.com", False),
        ("cup", "how much is 2 cups", True),
        ("buying the stamps", "I bought stamps, I will buy the envelopes", True),
        ("cap", "how much is 2 cups", False),
        ("reports.txt", "open report.txt", False),
        ("Anna", "write to ann", False),
    ],
)
def test_a_value_stands_in_the_conversation_or_does_not(value: object, said: str, is_there: bool) -> None:
    assert is_said(value, said, {}, GivenValues()) is is_there


@pytest.mark.req("FST-01")
@pytest.mark.parametrize(
    ("value", "said", "is_there"),
    [
        ("GBP", "how much is that in pounds sterling", True),
        ("GBP", "how much is that in dollars", False),
        (7, "in a week", True),
        (7, "in a month", False),
        ("ERR", "error", True),
    ],
)
def test_a_value_is_meant_only_where_the_words_for_it_were_said(value: object, said: str, is_there: bool) -> None:
    given = GivenValues({'"GBP"': ["sterling", "quid"], "7": ["a week"], '"ERR"': [""]})
    assert is_said(value, said, {}, given) is is_there


@pytest.mark.req("FST-01")
@pytest.mark.parametrize(
    ("path", "said", "kept"),
    [
        ("Documents/white-paper.pdf", "tldr of white-paper.pdf", "white-paper.pdf"),
        ("buy sparkling water", "remove sparkling water from the list", "sparkling water"),
        ("Documents/letters/x.pdf", "open x.pdf", ""),
        ("eve@example.com", "write to anna", ""),
        ("tom@mail.example", "tom.okafor@mail.example", ""),
        ("eva.tom@mail.example", "tom@mail.example", ""),
    ],
)
def test_of_a_value_that_was_said_in_part_that_part_is_taken(path: str, said: str, kept: str) -> None:
    reply = read_reply(f'filer_read_file {{"path": "{path}"}}', [READ], said)
    assert (reply.args_as_dict() if isinstance(reply, ToolCallPart) else {}) == ({"path": kept} if kept else {})


@pytest.mark.req("FST-01")
def test_an_invented_optional_argument_is_left_out() -> None:
    reply = read_reply('filer_read_file {"path": "Plan.MD", "offset": 300}', [READ], "read plan.md")
    assert isinstance(reply, ToolCallPart)
    assert reply.args_as_dict() == {"path": "Plan.MD"}


@pytest.mark.req("FST-01")
@pytest.mark.parametrize(
    ("path", "said", "meant"),
    [
        ("packing-txt", "read packing.txt\nand make a copy of it called packing-2.txt", "packing.txt"),
        ("packingtxt", "read Packing.txt", "Packing.txt"),
        ("notes/plan-b.md", "read it again: notes/plan_b.md.", "notes/plan_b.md"),
        ("Plan.MD", "read plan.md", "Plan.MD"),
        ("a-b.txt", "copy a_b.txt to a.b.txt", "a-b.txt"),
        ("17.5", "17,5 of it", "17.5"),
    ],
)
def test_a_name_that_was_said_with_other_signs_is_taken_as_it_was_said(path: str, said: str, meant: str) -> None:
    reply = read_reply(f'filer_read_file {{"path": "{path}"}}', [READ], said)
    assert isinstance(reply, ToolCallPart)
    assert reply.args_as_dict() == {"path": meant}


@pytest.mark.req("FST-01")
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Diebauer wrote it in 1848.", "who wrote Faust?"),
        ("It was written by Diebauer.", "who wrote Faust?"),
        ("1848 was the year.", "when was that?"),
        ("The mountain is 3000 meters high.", "how high is it?"),
    ],
)
def test_names_and_numbers_that_nobody_said_are_not_told(written: str, said: str) -> None:
    reply = read_reply(written, [READ], said)
    assert isinstance(reply, TextPart)
    assert (reply.content, reply.provider_details) == (NOT_KNOWN, None)
    assert "annabelle init" in NOT_KNOWN, "it says what would help"


@pytest.mark.req("FST-01")
@pytest.mark.parametrize(
    ("written", "said", "shown"),
    [
        ("Hello! I am Annabelle.", "hi", "Hello! I am Annabelle."),
        ("Rex is a good name.", "my dog is called Rex", "Rex is a good name."),
        ("One. Two is next. Three is last.", "count", "One. Two is next."),
        ("so " * 200, "talk", ("so " * 80).strip() + " …"),
    ],
)
def test_what_it_says_by_itself_is_short_and_marked(written: str, said: str, shown: str) -> None:
    reply = read_reply(written, [READ], said)
    assert isinstance(reply, TextPart)
    assert (reply.content, reply.provider_details) == (shown, {FROM_MEMORY: True})
