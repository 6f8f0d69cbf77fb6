"""`annabelle health run`: the monitor of agents from the terminal."""

from __future__ import annotations

import json

import pytest

from cli.terminal import run


@pytest.mark.req("DIA-05", "AGE-10")
def test_the_monitor_runs_when_it_is_asked_to_and_says_what_it_did(running: dict[str, str]) -> None:
    assert "All is well" in run(running, "health", "run").stdout
    found = json.loads(run(running, "health", "run", "--json").stdout)
    assert {name for name, value in found.items() if value == 0} >= {"stuck", "retried", "expired", "staleTasks"}
