"""The questions of a turn are put to the person at the terminal; what they do not answer waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from annabelle.cli.approval_prompt import ApprovalPrompter
from annabelle.cli.hub_client import CliHubClient
from annabelle.core.home import Home
from cli.stand_in_hub import StandInHub, asked

ONE, TWO = asked(11)["id"], asked(12)["id"]


class Person:
    """Types these lines, one for each prompt; then nothing more, as with Ctrl-D. A `^C` interrupts."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        if not self._lines:
            return None
        if (line := self._lines.pop(0)) == "^C":
            raise KeyboardInterrupt
        return line


@pytest.fixture
def hub(home: Home) -> Iterator[Callable[..., StandInHub]]:
    home.prepare()
    with ExitStack() as stack:
        yield lambda *questions: stack.enter_context(StandInHub(home, *questions))


@pytest.fixture
def asker(home: Home) -> Iterator[Callable[[Person], ApprovalPrompter]]:
    with asyncio.Runner() as runner:
        clients: list[CliHubClient] = []

        def made(person: Person) -> ApprovalPrompter:
            clients.append(CliHubClient.for_home(home))
            return ApprovalPrompter(runner, clients[-1], person)

        yield made
        for client in clients:
            runner.run(client.__aexit__())


Hub = Callable[..., StandInHub]
Make = Callable[[Person], ApprovalPrompter]


@pytest.mark.req("POL-03", "UX-01")
@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (["y"], {"verdict": "approve"}),
        (["what?", "", "Yes, but to Ben", "a moment, please", "y tho", "Yes!"], {"verdict": "approve"}),
        (["n"], {"verdict": "deny"}),
        (["no: she is on leave"], {"verdict": "deny", "note": "she is on leave"}),
        (["a"], {"verdict": "approve", "always": True}),
    ],
)
def test_a_person_is_shown_the_exact_call_and_their_answer_is_handed_over(
    hub: Hub, asker: Make, capsys: pytest.CaptureFixture[str], typed: list[str], answer: dict[str, object]
) -> None:
    here = hub(asked(11))
    assert asker(Person(*typed)).ask_all([ONE]) == "msg_2"
    assert here.answers == [(ONE, answer)]
    shown = capsys.readouterr().out
    for words in ('to: ["anna@example.com"]', 'body: "See you."', "You did not name anna", "waits until 2026-11-1"):
        assert words in shown
    assert "Always means: Always let annabelle" in shown


@pytest.mark.req("POL-03")
@pytest.mark.incident("I-28")
@pytest.mark.parametrize("typed", [["l"], ["later"], [], ["^C"], ["hm", "^C"]])
def test_what_is_put_off_stays_asked_and_the_person_is_told_where(
    hub: Hub, asker: Make, capsys: pytest.CaptureFixture[str], typed: list[str]
) -> None:
    here = hub(asked(11), asked(12))
    assert not asker(Person(*typed)).until_settled([ONE, TWO], lambda message_id: pytest.fail("nothing goes on"))
    assert here.answers == []
    assert "annabelle approvals" in capsys.readouterr().out


@pytest.mark.req("POL-03")
def test_each_question_of_a_turn_is_asked_and_again_when_it_asks_again(hub: Hub, asker: Make) -> None:
    here = hub(asked(11), asked(12), asked(13))
    here.going_on = [None, "msg_2", "msg_3"]
    went_on: list[str] = []

    def go_on(message_id: str) -> list[str]:
        went_on.append(message_id)
        return [asked(13)["id"]] if message_id == "msg_2" else []

    assert asker(Person("y", "n", "y")).until_settled([ONE, TWO], go_on)
    assert went_on == ["msg_2", "msg_3"]
    assert [answer["verdict"] for _, answer in here.answers] == ["approve", "deny", "approve"]


@pytest.mark.req("POL-03")
def test_a_task_in_the_background_goes_on_by_itself_once_its_question_is_answered(
    hub: Hub, asker: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    here = hub(asked(11))
    here.going_on, here.task = [None], "tsk_1"
    assert asker(Person("y")).until_settled([ONE], lambda message_id: pytest.fail("no turn goes on"))
    assert capsys.readouterr().out.endswith("The task in the background goes on: annabelle tasks\n")


def test_no_choice_is_offered_that_does_not_exist(hub: Hub, asker: Make) -> None:
    here = hub(asked(11, always=None))
    person = Person("a", "s", "y")
    asker(person).ask_all([ONE])
    assert here.answers == [(ONE, {"verdict": "approve"})]
    assert len(person.prompts) == 3
    assert "lways" not in person.prompts[0]
    assert "how" not in person.prompts[0]


def test_a_long_call_is_cut_and_shown_whole_when_wanted(
    hub: Hub, asker: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    hub(asked(11, arguments={"body": "a" * 2000 + "b" * 2000 + "c" * 2000, "to": "anna"}))
    person = Person("l")
    asker(person).ask_all([ONE])
    cut = capsys.readouterr().out
    assert "characters are left out here" in cut
    assert "b" * 10 not in cut
    assert "[s]how all of it" in person.prompts[0]
    asker(Person("s", "l")).ask_all([ONE])
    assert "b" * 2000 in capsys.readouterr().out


@pytest.mark.req("POL-03")
def test_arguments_are_changed_in_the_editor_and_a_mistake_in_them_is_asked_again(
    hub: Hub, asker: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = hub(asked(11))
    editor = tmp_path / "editor"
    editor.write_text(
        '#!/bin/sh\nif [ -e "$0.2" ]; then sed -i s/Hello/Bye/ "$1"\n'
        'elif [ -e "$0.1" ]; then touch "$0.2"; echo {{ > "$1"\nelse touch "$0.1"\nfi\n'
    )
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    assert asker(Person("e", "e", "e")).ask_all([ONE]) == "msg_2"
    ((_, answer),) = here.answers
    assert answer["arguments"]["subject"] == "Bye"
    told = capsys.readouterr().err
    assert "You changed nothing." in told
    assert "not valid JSON" in told


@pytest.mark.incident("I-28")
def test_a_question_that_was_answered_elsewhere_is_not_asked_and_its_turn_is_followed(
    hub: Hub, asker: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    here = hub(asked(11, "used", continuedBy="msg_9"))
    person = Person("y")
    assert asker(person).ask_all([ONE]) == "msg_9"
    assert (here.answers, person.prompts) == ([], [])
    assert "approved and done" in capsys.readouterr().out
