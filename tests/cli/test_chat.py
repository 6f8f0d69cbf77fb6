"""The chat on a real terminal: streaming, tools, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from annabelle.core.home import Home
from cli.terminal import Terminal, gone, hub_pid, started_by_up, wait_until
from support.scripted_model import ScriptedServer, plan_text

Open = Callable[..., Terminal]
PROMPT = "› "


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[dict[str, str]]:
    with started_by_up(tmp_path_factory.mktemp("cli"), model.openai_url) as known:
        yield known


@pytest.mark.req("UX-01")
def test_annabelle_alone_opens_a_chat_says_which_model_answers_and_leaves_with_ctrl_d(terminal: Open, home: Home):
    chat = terminal()
    chat.expect("Starting Annabelle …")
    greeting = chat.expect(PROMPT)
    assert "scripted at the OpenAI-compatible server answers" in greeting
    chat.type("Hello there\n")
    chat.expect("You said: .*\\s*Hello there")
    chat.expect(PROMPT)
    chat.type("\x04")
    chat.expect("Bye")
    chat.expect("Stopping Annabelle …")
    assert chat.wait() == 0
    assert not home.hub_file.exists()


@pytest.mark.req("UX-01", "LOOP-01")
def test_tool_activity_is_shown_while_it_happens(visit: Open):
    chat = visit("chat", "--new")
    chat.expect(PROMPT)
    chat.type(plan_text([("filer_create_file", {"path": "a.txt", "content": "x"})], say="It is there.") + "\n")
    chat.expect('⚙ filer create file .*path="a.txt"')
    chat.expect("✓.*filer create file")
    chat.expect(r"\nIt is there\.")
    chat.expect(PROMPT)
    chat.type("\x04")
    assert chat.wait() == 0


@pytest.mark.req("UX-01")
@pytest.mark.incident("I-27")
def test_ctrl_c_stops_the_answer_and_the_chat_goes_on(visit: Open, dawdling: str):
    chat = visit("chat", "--new")
    chat.expect(PROMPT)
    chat.type(f"{dawdling}\n")
    chat.expect("One")
    chat.type("\x03")
    chat.expect("Stopped")
    chat.expect(PROMPT)
    chat.type(plan_text(say="Next answer.") + "\n")
    chat.expect(r"\x1b\[KNext answer\.")
    chat.expect(PROMPT)
    chat.press("\x03")
    chat.expect("Ctrl-D, leaves")
    chat.expect(PROMPT)
    chat.press("\x03")
    chat.expect("Bye")
    assert chat.wait() == 0


@pytest.mark.req("CMD-01", "UX-01")
def test_commands_are_answered_in_the_chat_and_completed_with_tab(visit: Open):
    chat = visit("chat", "--new")
    chat.expect(PROMPT)
    chat.type("/statu\t summary\n")
    chat.expect(r"Annabelle \S+ is ready for")
    chat.expect(PROMPT)
    chat.type("/new\n")
    chat.expect("This conversation is new already")
    chat.expect(PROMPT)
    chat.type(plan_text(say="Hello.") + "\n")
    chat.expect(r"\x1b\[KHello\.")
    chat.expect(PROMPT)
    chat.type("/new\n")
    chat.expect("A new conversation begins")
    chat.expect(PROMPT)
    chat.type(plan_text(say="Hello again.") + "\n")
    chat.expect(r"\x1b\[KHello again\.")
    chat.expect(PROMPT)
    chat.type("/ex\t\n")
    chat.expect("Bye")
    assert chat.wait() == 0


def test_a_failed_turn_is_a_sentence_and_the_chat_goes_on(visit: Open, refusing: str):
    chat = visit("chat", "--new")
    chat.expect(PROMPT)
    chat.type(f"{refusing}\n")
    chat.expect("refused the API key")
    assert "Traceback" not in chat.expect(PROMPT)
    chat.type(plan_text(say="Still here.") + "\n")
    chat.expect(r"\x1b\[KStill here\.")
    chat.expect(PROMPT)
    chat.type("/quit\n")
    assert chat.wait() == 0


def test_what_was_typed_is_remembered_for_its_owner_only(visit: Open, running: dict[str, str]):
    first = visit("chat", "--new")
    first.expect(PROMPT)
    first.type("remember me\n")
    first.expect(r"(?s)You said: .*remember me")
    first.expect(PROMPT)
    first.type("\x04")
    assert first.wait() == 0
    history = Home(Path(running["ANNABELLE_HOME"])).history_file
    assert history.stat().st_mode & 0o777 == 0o600
    second = visit("chat", "--new")
    second.expect(PROMPT)
    second.type("\x1b[A\n")
    second.expect(r"(?s)You said: .*remember me")
    second.expect(PROMPT)
    second.type("\x04")
    assert second.wait() == 0


@pytest.mark.req("UX-01", "LLM-02")
def test_the_model_that_is_named_is_the_one_of_the_hub_and_not_of_this_terminal(visit: Open):
    chat = visit(
        "chat", "--new", THINKER_LLM_PROVIDER="groq", GROQ_API_KEY="gsk_of_this_terminal", COMPATIBLE_MODEL="x"
    )
    greeting = chat.expect(PROMPT)
    assert "scripted at the OpenAI-compatible server answers" in " ".join(greeting.split())
    assert "roq" not in greeting
    chat.type("\x04")
    assert chat.wait() == 0


@pytest.mark.req("UX-01")
def test_where_settings_have_changed_since_the_start_the_model_is_named_with_the_first_answer(
    visit: Open, running: dict[str, str]
):
    settings_file = Home(Path(running["ANNABELLE_HOME"])).settings_file
    settings_file.write_text("COMPATIBLE_MODEL=of-the-next-start\n")
    try:
        chat = visit("chat", "--new")
        greeting = " ".join(chat.expect(PROMPT).split())
        assert "shown with the first answer" in greeting
        assert "of-the-next-start" not in greeting
        chat.type(plan_text(say="Here I am.") + "\n")
        chat.expect(r"\x1b\[KHere I am\.")
        chat.expect("scripted at the OpenAI-compatible server answered")
        chat.expect(PROMPT)
        chat.type("\x04")
        assert chat.wait() == 0
    finally:
        settings_file.unlink()


@pytest.mark.incident("I-25")
def test_a_closed_terminal_ends_the_chat_and_its_hub(terminal: Open, known: dict[str, str], home: Home):
    chat = terminal()
    chat.expect(PROMPT)
    hub = hub_pid(known)
    os.kill(chat.process.pid, signal.SIGHUP)
    assert chat.wait() != 0
    wait_until(lambda: gone(hub), "the end of the hub")
    assert not home.hub_file.exists(), "it stopped as told, and did not just die"


@pytest.mark.req("UX-01")
def test_a_chat_whose_hub_was_killed_starts_another_and_says_it_there(
    terminal: Open, known: dict[str, str], home: Home
):
    chat = terminal()
    chat.expect(PROMPT)
    chat.type("Hello there\n")
    chat.expect("You said: .*\\s*Hello there")
    chat.expect(PROMPT)
    hub = hub_pid(known)
    os.kill(hub, signal.SIGKILL)
    wait_until(lambda: gone(hub), "the end of the hub")
    chat.type("Are you back\n")
    chat.expect("Starting Annabelle …")
    chat.expect("You said: .*\\s*Are you back")
    chat.expect(PROMPT)
    chat.type("\x04")
    assert chat.wait() == 0
    assert not home.hub_file.exists()


@pytest.mark.req("UX-01")
def test_an_answer_whose_hub_is_killed_goes_on_in_another(terminal: Open, known: dict[str, str], dawdling: str):
    chat = terminal()
    chat.expect(PROMPT)
    chat.type(f"{dawdling}\n")
    chat.expect("One")
    os.kill(hub_pid(known), signal.SIGKILL)
    chat.expect("Starting Annabelle …")
    chat.expect("You said: .*\\s*take your time")
    chat.expect(PROMPT)
    chat.type("\x04")
    assert chat.wait() == 0


@pytest.mark.req("SKL-02", "SKL-09")
def test_a_reminder_is_shown_above_the_line_that_is_being_typed(terminal: Open, home: Home):
    chat = terminal()
    chat.expect(PROMPT)
    call = ("memory_store_skill", {"message": "stretch", "when": "in 5 seconds"})
    chat.type(plan_text([call], say="I will remind you.") + "\n")
    chat.expect(r"\nI will remind you\.")
    chat.expect(PROMPT)
    chat.type("half a sen")
    chat.expect("⏰ stretch")
    chat.expect(f"{PROMPT}half a sen")
    chat.type("tence\n")
    chat.expect("You said: (?s:.*)half a sentence")
    chat.expect(PROMPT)
    chat.type("\x04")
    assert chat.wait() == 0
