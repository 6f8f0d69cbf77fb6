"""Agents, the engine and what stands still: each condition is produced in a hub, and each is fine without it."""

from __future__ import annotations

import json

import pytest

from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.hub.agents.halts import ALL
from annabelle.hub.agents.runner import AgentRestartBackoff
from annabelle.policy.costs import SpendingLimits, SpendingRate, reason_to_pause
from hub.diagnosis.conftest import Examined
from hub.skills.house import House, open_house
from support.virtual_clock import VirtualClock

PAUSED_FOR_COSTS = "it used 300,000 tokens within an hour, and 250,000 are the most it may"


@pytest.mark.req("DIA-01")
async def test_an_agent_that_waits_for_its_first_message_is_healthy(house: House, examine: Examined) -> None:
    assert [one.state for one in house.machine.hub.agents.statuses()] == ["stopped"]
    assert await examine("agent-health") == []


@pytest.mark.req("DIA-01")
async def test_a_paused_agent_is_critical_until_it_goes_on(house: House, examine: Examined) -> None:
    agents = house.machine.hub.agents
    await agents.pause("annabelle", "its owner wants quiet")
    (found,) = await examine("agent-health")
    assert (found.severity, found.subject) == ("critical", "annabelle")
    assert "its owner wants quiet" in found.text
    assert await examine("cost-status") == [], "it was not for costs"
    await agents.resume("annabelle", reset_window=False)
    assert await examine("agent-health") == []


@pytest.mark.req("DIA-01")
@pytest.mark.parametrize(("restarts", "seconds", "said"), [(3, 0, []), (4, 601, ["warning"]), (4, 0, ["critical"])])
async def test_more_than_three_restarts_are_a_warning_and_critical_if_they_come_at_once(
    house: House, examine: Examined, restarts: int, seconds: int, said: list[str]
) -> None:
    time = 0.0
    backoff = AgentRestartBackoff(0, clock=lambda: time)
    house.machine.hub.agents._runners["annabelle"].restarts = backoff
    for _ in range(restarts):
        backoff.restarted()
        time += seconds
    assert await examine.severities("agent-health") == said


@pytest.mark.req("DIA-01")
async def test_an_engine_that_does_not_run_is_critical(house: House, examine: Examined) -> None:
    assert await examine("engine-health") == []
    await house.machine.hub.storage.durable.close()
    assert await examine.severities("engine-health") == ["critical"]


@pytest.mark.req("DIA-01")
async def test_a_pause_for_tokens_is_a_matter_of_costs_also_in_the_background(house: House, examine: Examined) -> None:
    assert await examine("cost-status") == []
    limits = SpendingLimits(250_000, 2, 3, 1_000, 10_000)
    reading = SpendingRate(300_000, 10, 1, 1, 1, 1)
    assert "token" in (reason_to_pause(reading, limits) or ""), "the check goes by this word"
    await house.machine.hub.agents.pause_account("annabelle:background", PAUSED_FOR_COSTS)
    (found,) = await examine("cost-status")
    assert (found.severity, found.subject) == ("critical", "annabelle:background")
    assert "Background work of annabelle" in found.text
    assert await examine("agent-health") == [], "it still answers people"


@pytest.mark.req("DIA-01")
async def test_what_its_owner_stopped_is_a_warning_that_says_how_to_go_on(house: House, examine: Examined) -> None:
    halts = house.machine.hub.agents.halts
    assert await examine("halt-manager") == []
    halts.stop("annabelle", "owner")
    (found,) = await examine("halt-manager")
    assert (found.severity, found.action) == ("warning", "Let it go on with /resume annabelle")
    halts.stop(ALL, "owner")
    assert [one.subject for one in await examine("halt-manager")] == ["all"]


async def test_a_damaged_halt_file_is_named_as_the_reason(home: Home) -> None:
    home.halts_file.write_text('{"everything": nul')
    async with open_house(home, VirtualClock(now())) as house:
        (found,) = await Examined(house)("halt-manager")
    assert "damaged" in found.text


@pytest.mark.req("DIA-01")
async def test_the_owner_reads_the_report_over_http_and_nobody_else(house: House) -> None:
    answer = await house.owner.get("/diagnosis")
    assert answer.status_code == 200
    found = answer.json()
    assert len({one["check"] for one in found["findings"]}) == 22
    order = ["critical", "warning", "info", "ok"]
    ranks = [order.index(one["severity"]) for one in found["findings"]]
    assert ranks == sorted(ranks)
    assert found["worst"] == found["findings"][0]["severity"]
    refused = await house.thinker.agent.get("/diagnosis")
    assert refused.status_code == 403, json.dumps(refused.json())
