"""What people read: states that do not look like trouble, tools without machine words, tables without blanks."""

from __future__ import annotations

import io
import sys

import pytest

from annabelle.cli import spinner, status
from annabelle.cli.output import clean, print_table
from annabelle.cli.spinner import Spinner
from annabelle.core.home import Home
from annabelle.core.tools import first_sentence

AGENT = {"agentId": "annabelle", "enabled": True, "paused": False, "state": "stopped", "turns": 0, "flapping": False}


@pytest.mark.parametrize(
    ("news", "words"),
    [
        ({}, "ready, starts with its next message"),
        ({"state": "running"}, "running"),
        ({"state": "running", "turns": 2}, "running, answering 2"),
        ({"paused": True, "pauseReason": "too much spent"}, "paused: too much spent"),
        ({"enabled": False}, "switched off"),
        ({"flapping": True}, "keeps failing"),
    ],
)
def test_the_state_of_an_agent_is_told_in_words(
    news: dict[str, object], words: str, home: Home, capsys: pytest.CaptureFixture[str]
):
    status.print_status(home, {"agents": [AGENT | news]})
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("annabelle"))
    assert f"  {words}  " in line


@pytest.mark.parametrize(("seconds", "words"), [(0.4, ""), (1, "1 second"), (150, "2 minutes"), (90000, "1 day")])
def test_the_age_of_the_hub_is_told(seconds: float, words: str, home: Home, capsys: pytest.CaptureFixture[str]):
    home.hub_file.write_text('{"pid": 1, "url": "http://127.0.0.1:9", "version": "0"}')
    status.print_status(home, {"uptimeSeconds": seconds})
    assert capsys.readouterr().out.splitlines()[0].endswith(f", for {words}." if words else "(process 1).")


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ("[Files | files] Read a file. A long text\nis cut.", "Read a file"),
        ("Tell where it is,\n  and how big.", "Tell where it is, and how big"),
        ("Uses v1.2 of it\x1b[31m", "Uses v1.2 of it[31m"),
        ("", ""),
    ],
)
def test_a_tool_is_described_by_its_first_sentence(description: str, words: str):
    assert first_sentence(clean(description)) == words


def test_a_table_in_a_pipe_is_neither_cut_nor_filled_with_blanks(capsys: pytest.CaptureFixture[str]):
    print_table(("A", "B"), [("x", "short"), ("y[z]", "long " * 60)])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["A     B", "x     short", "y[z]  " + ("long " * 60).strip()]


class Watched(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_takes_long_is_said_at_once_and_taken_away_at_the_end(monkeypatch: pytest.MonkeyPatch):
    out = Watched()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(sys, "argv", ["annabelle"])
    with Spinner("Starting"):
        assert out.getvalue() == "\r\x1b[KStarting …"
    assert out.getvalue().endswith("\r\x1b[K")


def test_a_machine_hears_no_such_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    with Spinner("Starting"):
        pass
    monkeypatch.setattr(sys, "stderr", Watched())
    monkeypatch.setattr(sys, "argv", ["annabelle", "up", "--json"])
    assert not spinner.is_watched()
    assert capsys.readouterr().err == ""
