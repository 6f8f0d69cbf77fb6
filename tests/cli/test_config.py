"""`annabelle config`: what is in force and from where; secrets never shown."""

from __future__ import annotations

import json

import pytest

from annabelle.core.home import Home
from cli.terminal import Terminal, run

SECRET = "gsk_lovelace1815lovelace"


@pytest.mark.req("UX-01")
def test_a_setting_is_changed_read_and_returned_to_its_default(known: dict[str, str]):
    assert run(known, "config", "set", "max_concurrent_turns", "9").stdout == "MAX_CONCURRENT_TURNS is set.\n"
    assert run(known, "config", "get", "MAX_CONCURRENT_TURNS").stdout == "9\n"
    listed = json.loads(run(known, "config", "list", "--changed", "--json").stdout)
    assert ("MAX_CONCURRENT_TURNS", "9", "home") in [(one["name"], one["value"], one["from"]) for one in listed]
    assert "default" in run(known, "config", "unset", "max_concurrent_turns").stdout
    assert run(known, "config", "get", "max_concurrent_turns").stdout == "8\n"


@pytest.mark.req("UX-01")
def test_a_value_that_can_not_be_is_refused_and_nothing_is_written(known: dict[str, str], home: Home):
    refused = run(known, "config", "set", "max_concurrent_turns", "1000")
    assert refused.returncode == 2
    assert "256" in refused.stderr
    assert not home.settings_file.exists()


def test_the_environment_wins_and_that_is_said(known: dict[str, str]):
    told = run(known | {"USER_NAME": "Grace"}, "config", "set", "user_name", "Ada")
    assert "the environment wins" in told.stdout
    assert run(known | {"USER_NAME": "Grace"}, "config", "get", "user_name").stdout == "Grace\n"


@pytest.mark.req("TRC-03")
@pytest.mark.incident("I-30")
def test_a_secret_is_stored_for_its_owner_and_shown_to_nobody(known: dict[str, str], home: Home):
    told = run(known, "config", "set", "groq_api_key", stdin=f"{SECRET}\n")
    assert home.settings_file.read_text() == f"GROQ_API_KEY={SECRET}\n"
    assert home.settings_file.stat().st_mode & 0o777 == 0o600
    shown = [
        told,
        run(known, "config", "list"),
        run(known, "config", "get", "groq_api_key"),
        run(known, "config", "--json"),
    ]
    assert [one for one in shown if SECRET in one.stdout + one.stderr] == []
    assert "••••" in shown[2].stdout


@pytest.mark.req("TRC-03")
def test_a_secret_typed_at_the_terminal_is_not_echoed(known: dict[str, str], home: Home):
    typed = Terminal(known, "config", "set", "groq_api_key")
    try:
        typed.expect("GROQ_API_KEY: ")
        typed.type(f"{SECRET}\n")
        assert SECRET not in typed.expect("is set")
        assert typed.wait() == 0
    finally:
        typed.close()
    assert SECRET in home.settings_file.read_text()


def test_an_unknown_setting_names_the_closest(known: dict[str, str]):
    refused = run(known, "config", "get", "max_concurent_turns")
    assert refused.returncode == 2
    assert "MAX_CONCURRENT_TURNS" in refused.stderr
