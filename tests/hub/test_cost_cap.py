"""The cap of money holds whatever calls and crashes interleave, on the hub's own ledger."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timedelta

import pytest
from sqlalchemy import func, select

from annabelle.core.home import Home
from annabelle.store import ledger as stored
from annabelle.store.cost_control import to_nano_usd
from annabelle.store.database import Database
from annabelle.store.tables import model_calls
from hub.cost_house import house, record, request

CALLS = 1_000


@pytest.mark.req("TRU-01", "CST-09")
@pytest.mark.parametrize("seed", range(3))
async def test_the_cap_holds_under_a_thousand_concurrent_calls_and_crashes(
    seed: int, home: Home, database: Database, noon: datetime
) -> None:
    dice, cap = random.Random(seed), 1.0
    hub = await house(home, database, budget_day_usd=cap, budget_month_usd=5.0)
    provider: dict[str, int] = {}
    crashed: dict[str, int] = {}
    most_seen = 0

    async def call(number: int) -> None:
        nonlocal most_seen
        call_id, most = f"c{number}", dice.uniform(0, 0.02)
        for _ in range(dice.randint(0, 3)):
            await asyncio.sleep(0)
        reservation = await hub.ledger.reserve(request(call_id, most))
        if reservation.allowed and dice.random() < 0.1:
            assert (await hub.ledger.reserve(request(call_id, most))).allowed, "an answer that got lost is given again"
        most_seen = max(most_seen, sum(await hub.standing()))
        if not reservation.allowed:
            return
        real = most * dice.random()
        if dice.random() < 0.2:
            crashed[call_id] = to_nano_usd(most)  # whoever made it is gone: the provider may have charged up to that
            return
        provider[call_id] = to_nano_usd(real)
        for _ in range(dice.choice((1, 1, 2))):
            await hub.ledger.settle(record(call_id, real))

    await asyncio.gather(*(call(number) for number in range(CALLS)))
    assert 0 < len(provider) < CALLS
    assert most_seen <= to_nano_usd(cap)
    assert await hub.standing() == (sum(provider.values()), sum(crashed.values()))
    # A new hub gives up what nobody will settle; the cap still holds, to the last billionth.
    await database.write(lambda conn: stored.settle_abandoned(conn, noon + timedelta(seconds=1)))
    assert await hub.standing() == (sum(provider.values()) + sum(crashed.values()), 0)
    assert sum(provider.values()) + sum(crashed.values()) <= to_nano_usd(cap)
    booked = await database.read(
        lambda conn: conn.execute(select(func.count()).where(model_calls.c.state == "settled")).scalar_one()
    )
    assert booked == len(provider) + len(crashed)


@pytest.mark.req("TRU-01")
async def test_a_refused_reservation_says_why_and_local_models_go_on(home: Home, database: Database) -> None:
    hub = await house(home, database, budget_month_usd=0.5)
    assert (await hub.ledger.reserve(request("a", 0.5))).allowed
    refused = await hub.ledger.reserve(request("b", 0.01, purpose="summary"))
    assert not refused.allowed
    assert refused.reason is not None
    assert "budget of the month" in refused.reason
    assert "BUDGET_MONTH_USD" in (refused.hint or "")
    assert [notice.text for notice in hub.notices.all()] == [refused.reason]
    assert (await hub.ledger.reserve(request("c", 0.0, provider="ollama"))).allowed


@pytest.mark.req("TRU-01")
async def test_a_price_nobody_knows_is_warned_of_once(home: Home, database: Database) -> None:
    hub = await house(home, database)
    for number in range(3):
        await hub.ledger.reserve(request(f"c{number}", 0.1, price_known=False, model="strange"))
        if number == 0:
            (notice,) = hub.notices.all()
            assert "strange at groq is not known" in notice.text
            hub.notices.clear(notice.topic)
    assert hub.notices.all() == []


@pytest.mark.req("CST-09")
async def test_an_id_that_was_settled_buys_no_second_call(home: Home, database: Database) -> None:
    hub = await house(home, database)
    await hub.ledger.reserve(request("a", 0.1))
    await hub.ledger.settle(record("a", 0.1))
    assert not (await hub.ledger.reserve(request("a", 0.1))).allowed
