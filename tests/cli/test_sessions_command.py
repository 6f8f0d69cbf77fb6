"""`annabelle sessions`: the conversations there are, and how to start one afresh."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.terminal import run
from support.scripted_model import ScriptedServer


@pytest.mark.req("SES-07")
def test_a_conversation_is_listed_and_cleared_and_what_was_said_is_archived(
    running: dict[str, str], model: ScriptedServer
) -> None:
    assert run(running, "ask", "I am Ada.").returncode == 0
    (session,) = json.loads(run(running, "sessions", "--json").stdout)["sessions"]
    assert session["id"] in run(running, "sessions", "list").stdout

    cleared = run(running, "sessions", "clear", session["id"])

    assert (cleared.returncode, cleared.stderr) == (0, "")
    folder = Path(running["ANNABELLE_HOME"]) / "agents" / "annabelle" / "sessions" / "archive"
    archive = json.loads((folder / f"{session['id']}.jsonl").read_text())
    assert (archive["reason"], [turn["user"] for turn in archive["turns"]]) == ("manual", ["I am Ada."])
    run(running, "ask", "And now?")
    assert not [turn for turn in model.requests[-1].conversation.turns if turn.kind == "assistant"]
    assert json.loads(run(running, "sessions", "clear", session["id"], "--json").stdout) == {"cleared": session["id"]}


def test_a_conversation_that_is_not_there_is_named(running: dict[str, str]) -> None:
    missing = run(running, "sessions", "clear", "thr_01k9zq3v7k0000000000000000")
    assert missing.returncode != 0
    assert "thr_01k9zq3v7k0000000000000000" in missing.stderr
