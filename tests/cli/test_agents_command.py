"""`annabelle agents`: one agent in full."""

from __future__ import annotations

import json

import pytest

from cli.terminal import run


@pytest.mark.req("DIA-05")
def test_an_agent_is_shown_with_its_turns_its_costs_and_what_holds_it_back(running: dict[str, str]) -> None:
    assert "Nobody has written to it yet" in run(running, "agents", "show", "annabelle").stdout
    assert "starts with its next message" in run(running, "agents").stdout
    assert run(running, "ask", "--chat", "a", "is anybody there").returncode == 0
    assert run(running, "ask", "--chat", "b", "good morning to you").returncode == 0
    shown = json.loads(run(running, "agents", "show", "annabelle", "--json").stdout)
    assert shown["agent"]["state"] == "running"
    turns = [("done", "good morning to you"), ("done", "is anybody there")]
    assert [(turn["state"], turn["text"]) for turn in shown["turns"]] == turns, "the newest first"
    newest = json.loads(run(running, "agents", "show", "annabelle", "--last", "1", "--json").stdout)["turns"]
    assert [turn["text"] for turn in newest] == ["good morning to you"]
    assert shown["callsToday"] >= 1
    assert shown["halt"] is None
    text = run(running, "agents", "show", "annabelle").stdout
    assert "good morning to you" in text
    assert f"{shown['agent']['pid']} at port {shown['agent']['port']}" in text
    assert run(running, "stop", "annabelle").returncode == 0
    try:
        shown = json.loads(run(running, "agents", "show", "annabelle", "--json").stdout)
        assert shown["halt"]["by"]
        assert shown["halt"]["everything"] is False
        assert "alone, at " in run(running, "agents", "show", "annabelle").stdout
    finally:
        assert run(running, "resume", "annabelle").returncode == 0


@pytest.mark.req("DIA-05")
def test_an_agent_that_is_not_there_is_said(running: dict[str, str]) -> None:
    refused = run(running, "agents", "show", "nobody")
    assert refused.returncode == 2
    assert "There is no agent nobody." in refused.stderr
