"""`GET /cost-status`: what this process used, and how its agent stands in the hub's ledger."""

from __future__ import annotations

import pytest

from annabelle.core.contract import TokenUsage
from annabelle.core.errors import HubUnreachable
from annabelle.core.tools import JsonObject
from annabelle.thinker.costs import CostMeter


@pytest.mark.req("CST-04", "CST-01")
async def test_the_pause_and_the_window_are_the_hubs_and_the_calls_its_own() -> None:
    async def at_hub() -> JsonObject:
        return {"paused": True, "pauseReason": "cost control", "currentHourTokens": 260_000, "hardCap": 250_000}

    meter = CostMeter(at_hub)
    meter.add(TokenUsage(input_tokens=10, output_tokens=5))
    meter.add(TokenUsage(input_tokens=1, output_tokens=1))
    told = await meter.fetch_status()
    assert (told["paused"], told["pauseReason"], told["currentHourTokens"]) == (True, "cost control", 260_000)
    assert (told["calls"], told["input_tokens"], told["output_tokens"]) == (2, 11, 6)


@pytest.mark.req("THK-06")
async def test_a_hub_that_is_away_leaves_what_the_process_knows_itself() -> None:
    async def at_hub() -> JsonObject:
        raise HubUnreachable("The hub is away.")

    meter = CostMeter(at_hub)
    meter.add(TokenUsage(input_tokens=10))
    assert (await meter.fetch_status())["calls"] == 1
