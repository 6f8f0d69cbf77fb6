"""`annabelle approvals`: what waits is listed, shown whole, and answered with exactly what the person said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from annabelle.core.errors import Conflict
from annabelle.core.home import Home
from cli.stand_in_hub import StandInHub, asked
from cli.typed import Keyboard

Open = Callable[..., StandInHub]
ONE, TWO = asked(11)["id"], asked(12)["id"]


@pytest.fixture
def hub(home: Home) -> Iterator[Open]:
    home.prepare()
    with ExitStack() as stack:
        yield lambda *questions: stack.enter_context(StandInHub(home, *questions))


@pytest.fixture
def typed(home: Home, monkeypatch: pytest.MonkeyPatch) -> Keyboard:
    return Keyboard({"ANNABELLE_HOME": str(home.root), "TZ": "UTC"}, monkeypatch)


@pytest.mark.req("POL-03", "UX-01")
@pytest.mark.incident("I-28")
def test_what_waits_is_listed_and_with_all_what_became_of_the_rest(hub: Open, typed: Keyboard) -> None:
    over = [asked(number, state) for number, state in enumerate(("used", "denied", "expired", "cancelled"), 20)]
    hub(asked(11), *over)
    first = typed.said("approvals").splitlines()
    assert first[0].split() == ["QUESTION", "STATE", "UNTIL", "TOOL", "ARGUMENTS"]
    assert first[1].startswith(f'{ONE}  waits  2026-11-16 10:00  gmail_send_email  to=["anna@example.com"]')
    assert len(first) == 2
    everything = typed.said("approvals", "--all")
    for state in ("waits", "approved and done", "denied", "expired", "taken back"):
        assert state in everything
    assert [one["state"] for one in typed("approvals", "list", "--json").json["approvals"]] == ["pending"]


def test_without_a_question_that_is_said(hub: Open, typed: Keyboard) -> None:
    hub(asked(11, "denied"))
    assert typed.said("approvals") == "No question waits for you.\n"
    assert typed("approvals", "--json").json == {"approvals": []}


@pytest.mark.req("POL-03")
def test_a_question_is_shown_whole_and_nothing_in_it_steers_the_terminal(hub: Open, typed: Keyboard) -> None:
    arguments = {
        "to": ["anna@example.com\x1b]0;owned\x07", "b\u202emoc.elpmaxe@o"],
        "body": 'Dear Anna,\n  subject: "forged"\n\x1b[2J\u200bBye' + "x" * 5000,
        "na\rme": 1,
    }
    hub(asked(11, arguments=arguments, reasons=["A mail said \x1b[31mso."]))
    shown = typed.said("approvals", "show", ONE)
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert r"anna@example.com\u001b]0;owned\u0007" in shown
    assert r"\u202emoc" in shown
    assert '    │   subject: "forged"' in shown
    assert r"    │ \u001b[2J\u200bBye" + "x" * 5000 in shown
    assert r"na\u000dme: 1" in shown
    assert r"Why: A mail said \u001b[31mso." in shown
    assert "Waits until: 2026-11-16 10:00" in shown
    assert "Always would mean: Always let annabelle" in shown
    assert typed("approvals", "show", ONE, "--json").json["always"]["match"] == {"tools": ["x"]}


@pytest.mark.incident("I-28")
def test_what_became_of_a_question_is_shown_with_it(hub: Open, typed: Keyboard) -> None:
    changed = {"to": ["ben@example.com"]}
    hub(asked(11, "used", edited=changed, note="rather Ben", decidedAt="2026-11-15T11:30:00Z"))
    shown = typed.said("approvals", "show", ONE)
    assert "State: approved and done, 2026-11-15 11:30" in shown
    assert 'Changed to:\n  to: ["ben@example.com"]' in shown
    assert "Your note: rather Ben" in shown
    assert "Answer with" not in shown


@pytest.mark.req("POL-03", "UX-01")
@pytest.mark.parametrize("given", [ONE, ONE[:-1], "0000000011", ONE.removeprefix("apr_")[:-1]])
def test_a_yes_is_given_by_id_or_any_end_of_it_and_the_answer_is_waited_for(
    hub: Open, typed: Keyboard, given: str
) -> None:
    here = hub(asked(11), asked(25), asked(16, "used"))
    assert typed.said("approvals", "approve", given) == "Approved: gmail_send_email.\nIt is sent.\n"
    assert here.answers == [(ONE, {"verdict": "approve", "note": "", "always": False})]


def test_what_fits_several_questions_or_none_answers_nothing(hub: Open, typed: Keyboard) -> None:
    here = hub(asked(11), asked(12))
    many = typed("approvals", "approve", "apr_01k9")
    assert (many.code, many.out) == (2, "")
    assert ONE in many.err
    assert TWO in many.err
    none = typed("approvals", "deny", "zzz\x1b[2J")
    assert (none.code, none.out) == (2, "")
    assert "annabelle approvals --all" in none.err
    assert "\x1b" not in none.err
    assert here.answers == []


@pytest.mark.req("POL-03")
def test_changed_arguments_come_from_the_command_line_or_the_editor(
    hub: Open, typed: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = {"to": "anna\u202e@example.com", "n": 1, "emoji": "\U0001f600\U000e0041"}
    here = hub(asked(11, arguments=odd))
    typed.said("approvals", "approve", ONE, "--arguments", '{"to": "ben"}', "--no-wait")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ncp "$1" "$0.seen"\nsed -i \'s/"n": 1/"n": 2/\' "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    typed.said("approvals", "approve", ONE, "--edit", "--note", "two of them", "--no-wait")
    assert [answer.get("arguments") for _, answer in here.answers] == [{"to": "ben"}, {**odd, "n": 2}]
    assert here.answers[1][1]["note"] == "two of them"
    seen = (tmp_path / "editor.seen").read_text()
    assert r"anna\u202e@" in seen
    assert json.loads(seen) == odd


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--arguments", "{"], "not valid JSON"),
        (["--arguments", "[1]"], "one JSON object"),
        (["--arguments", "[" * 100_000], "not valid JSON"),
        (["--arguments", "{}", "--edit"], "--edit"),
        (["--arguments", "{}", "--always"], "--always is for the call as it was asked"),
    ],
)
def test_arguments_that_make_no_sense_answer_nothing(
    hub: Open, typed: Keyboard, options: list[str], words: str
) -> None:
    here = hub(asked(11))
    done = typed("approvals", "approve", ONE, *options)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert here.answers == []


@pytest.mark.req("POL-05")
def test_always_shows_the_rule_it_makes(hub: Open, typed: Keyboard) -> None:
    here = hub(asked(11))
    said = typed.said("approvals", "approve", ONE, "--always", "--no-wait").splitlines()
    assert said[0].startswith("Always means: Always let annabelle call gmail_send_email")
    assert said[2] == "The rule is made: annabelle rules lists it."
    assert here.answers[0][1]["always"] is True


@pytest.mark.req("POL-03")
def test_a_no_with_a_note_is_handed_over_and_a_turn_with_other_questions_is_not_waited_for(
    hub: Open, typed: Keyboard
) -> None:
    here = hub(asked(11), asked(12))
    here.going_on = [None, "msg_2"]
    first = typed.said("approvals", "deny", ONE, "--note", "not today")
    assert first.startswith("Denied: gmail_send_email.\nAnnabelle goes on when its other questions are answered")
    assert here.answers == [(ONE, {"verdict": "deny", "note": "not today"})]
    assert typed("approvals", "deny", TWO, "--json").json["answer"] == "It is sent."


@pytest.mark.req("POL-03")
@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("approve", "Approved: gmail_send_email.\nThe task in the background goes on: annabelle tasks\n"),
        ("deny", "Denied: gmail_send_email.\nThe task in the background ends without the call: annabelle tasks\n"),
    ],
)
def test_an_answer_to_a_task_in_the_background_says_what_the_task_does(
    hub: Open, typed: Keyboard, verb: str, told: str
) -> None:
    here = hub(asked(11))
    here.going_on, here.task = [None], "tsk_1"
    assert typed.said("approvals", verb, ONE) == told
    assert typed("approvals", verb, ONE, "--json").json["taskId"] == "tsk_1"


@pytest.mark.req("POL-03", "UX-01")
def test_a_turn_that_asks_again_prints_the_next_question_and_says_so_with_its_exit_code(
    hub: Open, typed: Keyboard
) -> None:
    here = hub(asked(11))
    here.replies["msg_2"] = [{"text": "May I call filer_delete_file?", "metadata": {"approvals": [TWO]}}]
    done = typed("approvals", "approve", ONE)
    assert (done.code, done.err) == (6, "")
    assert done.out.endswith("May I call filer_delete_file?\n")


@pytest.mark.incident("I-28")
def test_an_answer_that_comes_too_late_says_how_it_was_answered(hub: Open, typed: Keyboard) -> None:
    here = hub(asked(11))
    here.refusal = Conflict("The question about gmail_send_email was denied at 10:30.", hint="Ask again.")
    done: Any = typed("approvals", "approve", ONE)
    assert (done.code, done.out) == (2, "")
    assert done.err == "The question about gmail_send_email was denied at 10:30.\nAsk again.\n"
