"""The terminal and a real hub: the person is asked where they talk, and what they answer is what happens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from annabelle.core.home import Home
from cli.terminal import Terminal, json_only
from cli.typed import Keyboard
from support.scripted_model import Call, Reply, Rule, ScriptedServer

Open = Callable[..., Terminal]
PROMPT, CHOICES = "› ", r"\[l\]ater\? "
WISH = "Please tidy up a little"


@pytest.fixture
def letter(running: dict[str, str], model: ScriptedServer) -> Iterator[Path]:
    """A file that the model wants to delete although nobody named it."""
    file = Home(Path(running["ANNABELLE_HOME"])).root / "workspace" / "letter.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("Dear Anna")
    delete = Call(name="filer_delete_file", arguments={"path": file.name})
    model.rules(
        Rule(match="tidy up", results=0, reply=Reply(tool_calls=[delete])),
        Rule(match="tidy up", results=1, reply=Reply(text="That is all.")),
    )
    yield file
    model.rules()


@pytest.mark.req("POL-03", "POL-07", "UX-01")
@pytest.mark.incident("I-28")
def test_in_a_chat_a_question_may_be_put_off_and_is_answered_there_later(visit: Open, letter: Path) -> None:
    chat = visit("chat", "--new")
    chat.expect(PROMPT)
    chat.type(f"{WISH}\n")
    asked = chat.expect(CHOICES)
    assert "May I call filer delete file?" in asked
    assert 'path: "letter.txt"' in asked
    assert "Why I ask:" in asked
    assert "annabelle approvals approve" not in asked
    chat.press("\x03")
    chat.expect("Nothing is done until you answer")
    chat.expect(PROMPT)
    assert letter.exists()
    chat.type("Hello meanwhile\n")
    chat.expect("You said: .*\\s*Hello meanwhile")
    chat.expect(PROMPT)
    chat.type("/approvals\n")
    chat.expect(CHOICES)
    chat.press("y\n")
    chat.expect("✓.*filer delete file")
    chat.expect(r"That is all\.")
    chat.expect(PROMPT)
    assert not letter.exists()
    chat.type("/approvals\n")
    chat.expect("No question waits for you")
    chat.expect(PROMPT)
    chat.type("\x04")
    assert chat.wait() == 0


@pytest.mark.req("POL-03")
def test_in_a_chat_a_no_leaves_everything_as_it_is_and_the_turn_goes_on(visit: Open, letter: Path) -> None:
    chat = visit("chat", "--new")
    chat.expect(PROMPT)
    # A yes that was typed before the question could be read is none.
    chat.type(f"{WISH}\ny\n")
    chat.expect(CHOICES)
    chat.press("n, I need it\n")
    chat.expect("The user said no and added: I need it")
    chat.expect(r"That is all\.")
    chat.expect(PROMPT)
    assert letter.exists()
    # The answer is no line of the chat: the last one is what was asked for.
    chat.type("\x1b[A")
    chat.expect(WISH)
    chat.press("\x03")
    chat.expect(PROMPT)
    chat.type("\x04")
    assert chat.wait() == 0


@pytest.mark.req("POL-03", "UX-01")
def test_a_question_asked_at_a_terminal_is_answered_before_the_answer_is_printed(visit: Open, letter: Path) -> None:
    asking = visit("ask", "--new", WISH)
    asking.expect(CHOICES)
    asking.press("y\n")
    asking.expect(r"That is all\.")
    assert asking.wait() == 0
    assert not letter.exists()


@pytest.mark.req("POL-03", "UX-01")
@pytest.mark.incident("I-28")
def test_where_nobody_can_be_asked_the_question_is_printed_and_another_command_answers_it(
    keyboard: Keyboard, letter: Path
) -> None:
    asked = keyboard("ask", "--new", WISH)
    assert (asked.code, asked.err) == (6, "")
    found = re.search(r"annabelle approvals approve (apr_\w+)", asked.out)
    assert found is not None
    assert letter.exists()
    assert found[1] in keyboard.said("approvals")
    assert keyboard.said("approvals", "approve", found[1]) == "Approved: filer_delete_file.\nThat is all.\n"
    assert not letter.exists()
    again = keyboard("approvals", "approve", found[1])
    assert again.code == 2
    assert "approved" in again.err
    assert "State: approved and done" in keyboard.said("approvals", "show", found[1])


@pytest.mark.req("POL-03", "UX-01")
def test_for_a_machine_the_open_questions_are_named_in_the_json(keyboard: Keyboard, letter: Path) -> None:
    asked = keyboard("ask", "--new", "--json", WISH)
    assert (asked.code, asked.err) == (6, "")
    said = json_only(asked.out)
    (question,) = said["approvals"]
    piped = keyboard("chat", "--json", "--new", stdin=f"{WISH}\n")
    assert piped.code == 6
    (other,) = json.loads(piped.out)["approvals"]
    assert question != other
    changed = json.dumps({"path": "another.txt"})
    (letter.parent / "another.txt").write_text("x")
    done = keyboard("approvals", "approve", question, "--arguments", changed, "--json").json
    assert (done["approval"]["edited"], done["answer"]) == ({"path": "another.txt"}, "That is all.")
    assert not (letter.parent / "another.txt").exists()
    assert keyboard("approvals", "deny", other, "--json").json["approval"]["state"] == "denied"
    assert letter.exists()
