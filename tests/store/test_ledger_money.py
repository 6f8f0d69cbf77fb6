"""The budgets of a day and a month hold in the database itself, on both engines."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from annabelle.core.contract import ModelCall, Reserve, TokenUsage
from annabelle.core.messages import now
from annabelle.store import cost_control, ledger
from annabelle.store.cost_control import OverBudget, RecentCall, SpendingCaps, to_nano_usd
from annabelle.store.database import Database
from annabelle.store.tables import model_calls

NOON = datetime(2026, 7, 3, 12, 0, tzinfo=UTC)
DAY, MONTH = "2026-07-03", "2026-07"


def reserve(call_id: str, usd: float, **fields: object) -> Reserve:
    known = {"agent_id": "annabelle", "user_id": "owner", "message_id": "msg_1", "purpose": "chat"}
    more = {"provider": "groq", "model": "m", "estimated_input_tokens": 10, "reserved_usd": usd}
    return Reserve.model_validate({"call_id": call_id, **known, **more, **fields})


def settlement(call_id: str, usd: float | None, **fields: object) -> ModelCall:
    known = {"agent_id": "annabelle", "user_id": "owner", "message_id": "msg_1", "purpose": "chat"}
    usage = TokenUsage(input_tokens=100, output_tokens=20, cost_usd=usd)
    more = {"trace_id": None, "provider": "groq", "model": "m", "duration_ms": 1.0, "usage": usage}
    return ModelCall.model_validate({"call_id": call_id, **known, **more, **fields})


async def standing(db: Database, at: datetime = NOON) -> dict[str, tuple[int, int]]:
    found = await db.read(lambda c: cost_control.read_spending(c, at))
    return {one.period: (one.settled, one.reserved) for one in found}


@pytest.mark.req("TRU-01")
async def test_what_is_held_back_becomes_what_was_spent_in_day_and_month(db: Database) -> None:
    await db.write(lambda c: ledger.reserve_call(c, reserve("a", 0.5), at=NOON))
    assert await standing(db) == {DAY: (0, to_nano_usd(0.5)), MONTH: (0, to_nano_usd(0.5))}
    await db.write(lambda c: ledger.settle_call(c, settlement("a", 0.2), at=NOON + timedelta(minutes=1)))
    assert await standing(db) == {DAY: (to_nano_usd(0.2), 0), MONTH: (to_nano_usd(0.2), 0)}


@pytest.mark.req("TRU-01")
@pytest.mark.parametrize("caps", [SpendingCaps(day=to_nano_usd(1.0)), SpendingCaps(month=to_nano_usd(1.0))])
async def test_a_call_that_could_pass_a_cap_is_refused_and_leaves_nothing_behind(
    db: Database, caps: SpendingCaps
) -> None:
    await db.write(lambda c: ledger.reserve_call(c, reserve("a", 0.6), caps, NOON))
    with pytest.raises(OverBudget) as refused:
        await db.write(lambda c: ledger.reserve_call(c, reserve("b", 0.5), caps, NOON))
    over = refused.value
    assert (over.spent.settled, over.spent.reserved, over.cap, over.asked) == (
        0,
        to_nano_usd(0.6),
        to_nano_usd(1.0),
        to_nano_usd(0.5),
    )
    assert await standing(db) == {DAY: (0, to_nano_usd(0.6)), MONTH: (0, to_nano_usd(0.6))}
    assert await db.write(lambda c: ledger.reserve_call(c, reserve("c", 0.4), caps, NOON)) == "new", (
        "exactly the cap is fine"
    )
    assert await db.write(lambda c: ledger.reserve_call(c, reserve("a", 0.6), caps, NOON)) == "open", (
        "told again, no refusal"
    )
    assert await db.write(lambda c: ledger.reserve_call(c, reserve("free", 0.0), caps, NOON)) == "new"


@pytest.mark.req("TRU-01")
async def test_many_reservations_at_once_never_pass_the_cap_together(db: Database) -> None:
    caps = SpendingCaps(day=to_nano_usd(1.0))

    async def ask(number: int) -> bool:
        try:
            await db.write(lambda c: ledger.reserve_call(c, reserve(f"c{number}", 0.3), caps, NOON))
        except OverBudget:
            return False
        return True

    assert sum(await asyncio.gather(*(ask(number) for number in range(40)))) == 3
    assert (await standing(db))[DAY] == (0, to_nano_usd(0.9))


@pytest.mark.req("TRU-01")
async def test_a_call_that_cost_more_than_was_reserved_is_booked_truthfully_and_seen_by_the_next(db: Database) -> None:
    caps = SpendingCaps(day=to_nano_usd(1.0))
    await db.write(lambda c: ledger.reserve_call(c, reserve("a", 0.1), caps, NOON))
    await db.write(lambda c: ledger.settle_call(c, settlement("a", 0.95), caps, NOON))
    with pytest.raises(OverBudget):
        await db.write(lambda c: ledger.reserve_call(c, reserve("b", 0.1), caps, NOON))
    assert (await standing(db))[DAY] == (to_nano_usd(0.95), 0)


@pytest.mark.req("TRU-01")
async def test_a_call_that_is_never_settled_is_booked_at_its_reservation_and_late_word_corrects_it(
    db: Database,
) -> None:
    await db.write(lambda c: ledger.reserve_call(c, reserve("old", 0.5), at=NOON))
    await db.write(lambda c: ledger.reserve_call(c, reserve("young", 0.25), at=NOON + timedelta(minutes=9)))
    given_up = await db.write(lambda c: ledger.settle_abandoned(c, NOON + timedelta(minutes=5)))
    assert [(one.agent_id, one.usage.input_tokens) for one in given_up] == [("annabelle", 10)]
    assert (await standing(db))[DAY] == (to_nano_usd(0.5), to_nano_usd(0.25))
    assert await db.write(lambda c: ledger.settle_abandoned(c, NOON + timedelta(minutes=5))) == []
    for _ in range(2):
        await db.write(lambda c: ledger.settle_call(c, settlement("old", 0.125)))
    assert (await standing(db))[DAY] == (to_nano_usd(0.125), to_nano_usd(0.25))
    (total,) = await db.read(lambda c: ledger.sum_usage(c, "owner"))
    assert (total.calls, total.open, total.usage.cost_usd) == (2, 1, 0.125)


@pytest.mark.req("TRU-01")
async def test_a_cost_nobody_states_is_the_reserved_one(db: Database) -> None:
    await db.write(lambda c: ledger.reserve_call(c, reserve("a", 0.5), at=NOON))
    await db.write(lambda c: ledger.settle_call(c, settlement("a", None)))
    assert (await standing(db))[DAY] == (to_nano_usd(0.5), 0)
    assert (await db.read(lambda c: ledger.sum_usage(c, None)))[0].usage.cost_usd == 0.5


@pytest.mark.req("TRU-01", "CST-09")
async def test_nobody_settles_what_another_agent_or_purpose_reserved(db: Database) -> None:
    await db.write(lambda c: ledger.reserve_call(c, reserve("a", 0.5), at=NOON))
    for fields in ({"purpose": "embedding"}, {"agent_id": "muse"}):
        assert await db.write(lambda c, f=fields: ledger.settle_call(c, settlement("a", 0.0, **f))) is None
    assert (await standing(db))[DAY] == (0, to_nano_usd(0.5))


@pytest.mark.req("TRU-01")
async def test_a_call_over_midnight_is_booked_where_it_was_reserved(db: Database) -> None:
    late = datetime(2026, 7, 31, 23, 59, tzinfo=UTC)
    await db.write(lambda c: ledger.reserve_call(c, reserve("a", 0.5), at=late))
    await db.write(lambda c: ledger.settle_call(c, settlement("a", 0.25), at=late + timedelta(minutes=2)))
    assert await standing(db, late) == {"2026-07-31": (to_nano_usd(0.25), 0), "2026-07": (to_nano_usd(0.25), 0)}
    assert await standing(db, late + timedelta(minutes=2)) == {"2026-08-01": (0, 0), "2026-08": (0, 0)}


@pytest.mark.req("CST-05")
async def test_a_budget_warns_once_a_period_when_its_share_is_spent(db: Database) -> None:
    caps = SpendingCaps(day=to_nano_usd(1.0), month=to_nano_usd(10.0), warning_share=0.8)
    told: list[str] = []
    for number, usd in enumerate((0.5, 0.25, 0.125, 0.1)):
        await db.write(lambda c, n=number: ledger.reserve_call(c, reserve(f"c{n}", 0.1), at=NOON))
        settled = await db.write(
            lambda c, n=number, usd=usd: ledger.settle_call(c, settlement(f"c{n}", usd), caps, NOON)
        )
        assert settled is not None
        told += [one.period for one in settled.warnings]
    assert told == [DAY]
    (day, month) = await db.read(lambda c: cost_control.read_spending(c, NOON))
    assert day.warned_at is not None
    assert month.warned_at is None


@pytest.mark.req("CST-05")
@pytest.mark.parametrize("day", [None, to_nano_usd(10.0)])
async def test_a_month_warns_whether_or_not_its_day_has_a_budget(db: Database, day: int | None) -> None:
    caps = SpendingCaps(day=day, month=to_nano_usd(1.0), warning_share=0.8)
    told = [
        await db.write(lambda c, n=number: ledger.settle_call(c, settlement(f"c{n}", 0.4), caps, NOON))
        for number in range(2)
    ]
    assert [[one.period for one in settled.warnings] for settled in told if settled is not None] == [[], [MONTH]]


@pytest.mark.req("CST-05")
async def test_costs_are_grouped_by_purpose_and_by_person_and_say_what_has_no_price(db: Database) -> None:
    calls = (
        ("a", "chat", "owner", True),
        ("b", "summary", "owner", False),
        ("c", "embedding", "bob", True),
        ("d", "chat", "bob", True),
    )
    for call_id, purpose, user_id, known in calls:
        fields: dict[str, object] = {"purpose": purpose, "user_id": user_id}
        await db.write(
            lambda c, i=call_id, f=fields, k=known: ledger.reserve_call(c, reserve(i, 0.5, price_known=k, **f))
        )
        await db.write(lambda c, i=call_id, f=fields: ledger.settle_call(c, settlement(i, 0.25, **f)))
    by_purpose = await db.read(lambda c: ledger.sum_usage(c, None, "purpose"))
    assert [(one.key, one.calls, one.unpriced) for one in by_purpose] == [
        ("chat", 2, 0),
        ("embedding", 1, 0),
        ("summary", 1, 1),
    ]
    by_user = await db.read(lambda c: ledger.sum_usage(c, None, "user"))
    assert [(one.key, one.calls, one.usage.cost_usd) for one in by_user] == [("bob", 2, 0.5), ("owner", 2, 0.5)]
    assert [(one.usage.input_tokens, one.usage.output_tokens) for one in by_user] == [(200, 40)] * 2


@pytest.mark.req("CST-01")
async def test_the_last_hour_of_an_agent_is_read_back_by_the_minute(db: Database) -> None:
    at = now()
    for minutes, call_id in ((90, "old"), (59, "a"), (3, "b"), (0, "c")):
        made = at - timedelta(minutes=minutes)
        await db.write(lambda c, i=call_id, made=made: ledger.reserve_call(c, reserve(i, 0.0), at=made))
        await db.write(lambda c, i=call_id, made=made: ledger.settle_call(c, settlement(i, 0.0), at=made))
    await db.write(lambda c: ledger.reserve_call(c, reserve("open", 0.0), at=at))
    assert await db.read(lambda c: cost_control.list_last_hour(c, "annabelle", at, None)) == [
        RecentCall(59, 100, 20),
        RecentCall(3, 100, 20),
        RecentCall(0, 100, 20),
    ]
    cut = at - timedelta(minutes=3)
    assert await db.read(lambda c: cost_control.list_last_hour(c, "annabelle", at, cut)) == [RecentCall(0, 100, 20)]
    assert await db.read(lambda c: cost_control.list_last_hour(c, "muse", at, None)) == []


@pytest.mark.req("CST-01")
async def test_a_clock_that_went_back_leaves_an_hour_neither_empty_nor_longer(db: Database) -> None:
    at = now()
    for minutes in range(0, 120, 10):
        made, call_id = at + timedelta(minutes=minutes), f"c{minutes}"
        await db.write(lambda c, i=call_id, made=made: ledger.settle_call(c, settlement(i, 0.0), at=made))
    found = await db.read(lambda c: cost_control.list_last_hour(c, "annabelle", at, None))
    assert [call.minutes_ago for call in found] == [50, 40, 30, 20, 10, 0]


@pytest.mark.req("TRU-01")
async def test_what_is_spent_equals_the_sum_of_the_calls(db: Database) -> None:
    prices = [0.1, 1e-9, 0.333333333, 2.5e-7, 0.0]
    for number, usd in enumerate(prices):
        await db.write(lambda c, n=number, u=usd: ledger.reserve_call(c, reserve(f"c{n}", u * 2), at=NOON))
        await db.write(lambda c, n=number, u=usd: ledger.settle_call(c, settlement(f"c{n}", u)))
    summed = await db.read(lambda c: c.execute(select(func.sum(model_calls.c.cost_usd))).scalar_one())
    assert (await standing(db))[DAY] == (sum(map(to_nano_usd, prices)), 0)
    assert summed == pytest.approx(sum(prices))
