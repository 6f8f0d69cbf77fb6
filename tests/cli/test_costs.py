"""`annabelle costs`: what was spent, what may be spent, and letting a paused agent go on."""

from __future__ import annotations

import json

import pytest

from annabelle.core.home import Home
from cli.terminal import run


@pytest.mark.req("CST-05")
def test_costs_are_shown_by_what_is_asked_for_with_budgets_and_paused_agents(running: dict[str, str]):
    assert run(running, "ask", "hello").returncode == 0
    shown = run(running, "costs")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("DAY")
    assert "no budget is set" in shown.stdout
    assert "dearest model known" in shown.stdout, "the scripted model is in no price table"
    for by, key in (("agent", "annabelle"), ("purpose", "chat"), ("user", "owner"), ("model", "compatible/scripted")):
        told = json.loads(run(running, "costs", "--by", by, "--json").stdout)
        assert key in [total["key"] for total in told["totals"]]
        assert sum(total["calls"] for total in told["totals"]) >= 1
    assert told["budget"]["day"]["capUsd"] is None
    assert run(running, "costs", "--by", "colour").returncode == 2


@pytest.mark.req("CST-04", "CST-10")
def test_a_paused_agent_goes_on_only_when_it_is_told_to(running: dict[str, str]):
    assert run(running, "costs", "resume", "nobody").returncode == 2
    status = json.loads(run(running, "status", "--json").stdout)["agents"][0]
    assert status["costs"]["hardCap"] == 250_000
    assert status["worstCaseModelCalls"] > status["costs"]["activeBuckets"]
    assert f"at most {status['worstCaseModelCalls']}" in run(running, "status").stdout
    told = run(running, "costs", "resume", "annabelle", "--reset-window", "--json")
    assert json.loads(told.stdout)["costs"]["currentHourTokens"] == 0


@pytest.mark.req("CST-05", "TRU-01")
def test_budgets_are_set_in_the_home_checked_first_and_shown(known: dict[str, str], home: Home):
    assert "A day has no budget." in run(known, "costs", "budget").stdout
    told = run(known, "costs", "budget", "--day", "1.50", "--month", "20")
    assert told.stdout == "A day may cost $1.50.\nA month may cost $20.00.\n"
    kept = home.settings_file.read_text()
    assert "BUDGET_DAY_USD=1.50" in kept
    for wrong in ("-1", "much"):
        refused = run(known, "costs", "budget", "--day", wrong, "--month", "30")
        assert refused.returncode == 2
        assert "BUDGET_DAY_USD is not valid" in refused.stderr
    assert home.settings_file.read_text() == kept
    gone = run(known, "costs", "budget", "--day", "none", "--json")
    assert json.loads(gone.stdout)["configured"] == {"dayUsd": None, "monthUsd": 20.0}
