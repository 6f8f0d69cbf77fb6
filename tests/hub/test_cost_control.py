"""An agent that spends too fast is paused after the call that was too much, and only its owner lets it go on."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta

import pytest

from annabelle.core.contract import TokenUsage
from annabelle.core.errors import AgentPaused
from annabelle.core.home import Home
from annabelle.core.messages import OWNER, now
from annabelle.core.tools import JsonObject
from annabelle.hub.agents.config import CostControls
from annabelle.hub.costs.monitor import CostMonitor
from annabelle.store import ledger, messages, threads
from annabelle.store.cost_control import RecentCall
from annabelle.store.database import Database
from annabelle.store.messages import StoredMessage
from annabelle.store.threads import Thread
from hub.cost_house import House, house, record, request
from support import timing


async def chat(database: Database, chat_id: str = "main", channel: str = "cli") -> Thread:
    return await database.write(
        lambda conn: threads.find_or_create_thread(
            conn, channel=channel, chat_id=chat_id, user_id=OWNER, agent_id="annabelle"
        )
    )


async def said_in(database: Database, thread: Thread) -> list[StoredMessage]:
    return await database.read(lambda conn: messages.list_messages(conn, thread.id, OWNER))


async def spend(hub: House, call_id: str, tokens: int, **fields: object) -> None:
    assert (await hub.ledger.reserve(request(call_id, 0.0, **fields))).allowed
    await hub.ledger.settle(record(call_id, 0.0, tokens, **fields))


@pytest.mark.req("CST-02", "CST-04")
@pytest.mark.incident("I-16", "I-17")
@pytest.mark.parametrize("purpose", ["chat", "summary", "thinking", "embedding"])
async def test_the_cap_of_an_hour_lets_the_call_end_and_refuses_every_next_one_with_the_reason(
    purpose: str, home: Home, database: Database
) -> None:
    hub = await house(home, database)
    await hub.ledger.reserve(request("running", 0.0))
    await spend(hub, "a", 200_000)
    await spend(hub, "b", 60_000)
    assert hub.agents.is_paused("annabelle")
    refused = await hub.ledger.reserve(request("c", 0.0, purpose=purpose))
    assert not refused.allowed
    assert "260,000 tokens within an hour" in (refused.reason or "")
    assert "annabelle costs resume annabelle" in (refused.hint or "")
    with pytest.raises(AgentPaused, match="260,000 tokens"):
        hub.agents.check_paused("annabelle")
    with pytest.raises(AgentPaused, match="260,000 tokens"):
        async with hub.agents.turn("annabelle"):
            pytest.fail("a turn of a paused agent came as far as its process")
    await hub.ledger.settle(record("running", 0.0))  # what ran ends as if nothing were
    status = hub.agents.status("annabelle")
    assert (status.paused, status.available, status.costs.current_hour_tokens) == (True, False, 260_010)


@pytest.mark.req("CST-02")
async def test_what_a_model_writes_counts_as_what_it_reads(home: Home, database: Database) -> None:
    hub = await house(home, database)
    usage = TokenUsage(input_tokens=200_000, output_tokens=49_999)
    await hub.ledger.settle(record("a", 0.0, usage=usage))
    assert not hub.agents.is_paused("annabelle")
    await hub.ledger.settle(record("b", 0.0, usage=TokenUsage(output_tokens=1)))
    assert hub.agents.is_paused("annabelle")


@pytest.mark.req("CST-03")
@pytest.mark.parametrize(
    ("written", "paused"),
    [
        ({}, True),
        ({"spikeMultiplier": 5.0}, False),
        ({"shortWindowMinutes": 10}, False),
        ({"minimumBaselineTokens": 20_000}, False),
        ({"minimumBaselineRate": 30_000}, False),
        ({"enabled": False}, False),
    ],
)
def test_a_spike_is_what_the_agents_own_settings_call_one(written: JsonObject, paused: bool) -> None:
    minute = 0
    monitor = CostMonitor(lambda _agent: CostControls.model_validate(written), lambda: minute)
    monitor.count("annabelle", TokenUsage(input_tokens=15_000))
    minute = 20
    assert (monitor.count("annabelle", TokenUsage(input_tokens=100_000)) is not None) is paused


@pytest.mark.req("CST-04")
async def test_the_owner_is_told_once_in_a_chat_also_over_restarts(home: Home, database: Database) -> None:
    await chat(database, "older")
    latest = await chat(database, "latest")
    hub = await house(home, database)
    await spend(hub, "a", 300_000)
    for call_id in ("b", "c"):
        await hub.ledger.settle(record(call_id, 0.0, 300_000))
    for _ in range(2):
        again = await house(home, database)
        await again.ledger.start()
        await again.ledger.stop()
    (said,) = await said_in(database, latest)
    assert "I have paused the agent annabelle" in said.content
    assert "annabelle costs resume annabelle" in said.content
    assert [notice.topic for notice in hub.notices.all()] == ["agent_paused:annabelle"]


@pytest.mark.req("CST-04")
async def test_a_second_pause_is_told_again_and_an_owners_own_pause_is_not(home: Home, database: Database) -> None:
    thread = await chat(database)
    hub = await house(home, database)
    await hub.agents.pause("annabelle", "a holiday")
    await hub.ledger.start()
    await hub.ledger.stop()
    assert await said_in(database, thread) == []
    for call_id in ("a", "b"):
        await hub.agents.resume("annabelle", reset_window=True)
        await spend(hub, call_id, 300_000)
    assert len(await said_in(database, thread)) == 2


@pytest.mark.req("CST-04")
async def test_a_chat_of_the_agent_or_of_the_settings_is_told_instead(home: Home, database: Database) -> None:
    latest = await chat(database, "latest")
    agents = [
        {"agentId": "annabelle"},
        {"agentId": "muse", "costControls": {"notifyChannel": "telegram", "notifyChatId": "42"}},
    ]
    home.agents_file.write_text(json.dumps({"agents": agents}))
    hub = await house(home, database, notify_channel="cli", notify_chat_id="admin")
    await spend(hub, "a", 300_000)
    await spend(hub, "m", 300_000, agent_id="muse")
    assert await said_in(database, latest) == []
    assert "agent annabelle" in (await said_in(database, await chat(database, "admin")))[0].content
    (thread,) = [
        one for one in await database.read(lambda conn: threads.list_threads(conn, OWNER)) if one.channel == "telegram"
    ]
    assert "agent muse" in (await said_in(database, thread))[0].content


@pytest.mark.req("CST-04")
async def test_without_any_chat_the_notice_alone_tells(home: Home, database: Database) -> None:
    hub = await house(home, database)
    await spend(hub, "a", 300_000)
    assert hub.agents.is_paused("annabelle")
    assert "cost control" in hub.notices.all()[-1].text


@pytest.mark.req("CST-01", "CST-04")
async def test_the_window_is_there_again_after_a_restart_and_a_reset_lasts(home: Home, database: Database) -> None:
    hub = await house(home, database)
    await spend(hub, "a", 240_000)
    again = await house(home, database)
    assert again.agents.status("annabelle").costs.current_hour_tokens == 240_000
    await spend(again, "b", 10_000)
    assert again.agents.is_paused("annabelle")
    assert (await house(home, database)).agents.is_paused("annabelle"), "a restart is no way out"
    await again.agents.resume("annabelle", reset_window=True)
    assert again.agents.status("annabelle").costs.current_hour_tokens == 0
    last = await house(home, database)
    assert not last.agents.is_paused("annabelle")
    assert last.agents.status("annabelle").costs.current_hour_tokens == 0
    await spend(last, "c", 10)
    assert last.agents.status("annabelle").costs.current_hour_tokens == 10


@pytest.mark.req("CST-01")
def test_the_window_counts_what_a_model_is_given_and_what_it_answers() -> None:
    monitor = CostMonitor(lambda _agent: CostControls(), lambda: 1_000)
    for _ in range(2):
        monitor.count("annabelle", TokenUsage(input_tokens=100, output_tokens=20))
    found = monitor.status("annabelle")
    assert (found.current_hour_tokens, found.current_hour_calls, found.active_buckets) == (240, 2, 1)


@pytest.mark.req("CST-01")
def test_a_call_from_before_a_restart_leaves_the_window_an_hour_after_it_was_made() -> None:
    clock = [1_000]
    monitor = CostMonitor(lambda _agent: CostControls(), lambda: clock[0])
    monitor.restore("annabelle", [RecentCall(59, 100, 20), RecentCall(3, 10, 2)])
    full = monitor.status("annabelle")
    assert (full.current_hour_tokens, full.current_hour_calls, full.active_buckets) == (132, 2, 2)
    assert full.short_window_tokens_per_minute == 0
    clock[0] += 1
    left = monitor.status("annabelle")
    assert (left.current_hour_tokens, left.current_hour_calls) == (12, 1)


@pytest.mark.req("CST-04")
async def test_an_agent_that_goes_on_without_a_reset_is_paused_by_its_next_call(home: Home, database: Database) -> None:
    hub = await house(home, database)
    await spend(hub, "a", 300_000)
    await hub.agents.resume("annabelle", reset_window=False)
    await spend(hub, "b", 1)
    assert hub.agents.is_paused("annabelle")


@pytest.mark.req("CST-02", "CST-10")
async def test_control_is_on_by_default_follows_the_agents_own_figures_and_can_be_switched_off(
    home: Home, database: Database
) -> None:
    agents = [
        {"agentId": "annabelle"},
        {"agentId": "small", "costControls": {"hardCapTokensPerHour": 10_000}},
        {"agentId": "free", "costControls": {"enabled": False}},
    ]
    home.agents_file.write_text(json.dumps({"agents": agents}))
    hub = await house(home, database)
    for agent_id in ("annabelle", "small", "free"):
        await spend(hub, agent_id, 11_000, agent_id=agent_id)
    assert [one.agent_id for one in hub.agents.statuses() if one.paused] == ["small"]
    for agent_id in ("annabelle", "free"):
        await spend(hub, f"{agent_id}2", 500_000, agent_id=agent_id)
    assert [one.agent_id for one in hub.agents.statuses() if one.paused] == ["annabelle", "small"]
    assert hub.agents.status("annabelle").costs.enabled


@pytest.mark.req("CST-05")
@pytest.mark.usefixtures("noon")
async def test_a_budget_that_is_nearly_used_up_is_told_once(home: Home, database: Database) -> None:
    thread = await chat(database)
    hub = await house(home, database, budget_day_usd=1.0)
    for number in range(9):
        await hub.ledger.reserve(request(f"c{number}", 0.1))
        await hub.ledger.settle(record(f"c{number}", 0.1))
    again = await house(home, database, budget_day_usd=1.0)
    await again.ledger.start()
    await again.ledger.stop()
    (said,) = await said_in(database, thread)
    assert "80% of the budget of the day" in said.content
    assert "90% of the budget" in again.notices.all()[0].text


@pytest.mark.req("CST-05")
@pytest.mark.usefixtures("noon")
async def test_the_notice_of_a_budget_goes_with_its_day(
    home: Home, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = await house(home, database, budget_day_usd=1.0)
    await hub.ledger.reserve(request("a", 0.9))
    await hub.ledger.settle(record("a", 0.9))
    assert not (await hub.ledger.reserve(request("b", 0.9))).allowed
    topics = [notice.topic.split(":")[0] for notice in hub.notices.all()]
    assert topics == ["budget", "budget_reached"]
    looked = asyncio.Event()

    def tomorrow() -> datetime:
        looked.set()
        return now() + timedelta(days=1)

    monkeypatch.setattr("annabelle.hub.costs.ledger._LOOK_SECONDS", 0.001)
    await hub.ledger.start()
    assert len(hub.notices.all()) == 2
    monkeypatch.setattr("annabelle.hub.costs.ledger.now", tomorrow)
    async with asyncio.timeout(timing.seconds(30)):
        await looked.wait()
    await hub.ledger.stop()
    assert hub.notices.all() == []


@pytest.mark.req("TRU-01")
async def test_a_start_books_what_a_crash_left_open_and_leaves_what_may_still_run(
    home: Home, database: Database
) -> None:
    hub = await house(home, database, llm_timeout_seconds=90)
    for call_id, seconds in (("gone", 300), ("running", 100)):
        made = now() - timedelta(seconds=seconds)
        await database.write(lambda conn, i=call_id, at=made: ledger.reserve_call(conn, request(i, 0.25), at=at))
    await hub.ledger.start()
    await hub.ledger.stop()
    totals = await database.read(lambda conn: ledger.sum_usage(conn, OWNER, "agent"))
    assert [(total.calls, total.open, total.usage.cost_usd) for total in totals] == [(2, 1, 0.25)]
