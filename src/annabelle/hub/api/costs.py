"""`GET /costs`: what model calls have used, and how the budgets stand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from annabelle.core.messages import now
from annabelle.hub.api.documented import Answer, Caller, TheHub, failures
from annabelle.policy.costs.budgets import resets_at
from annabelle.store import ledger, spending
from annabelle.store.ledger import Grouping, Total
from annabelle.store.spending import NANO, Caps, Spent

router = APIRouter(tags=["costs"])


class CostTotal(Answer):
    """What one day, agent, model, purpose or person used. `open` calls have not ended yet."""

    key: str
    calls: int
    open: int
    unpriced: int = Field(description="Calls whose price is not known; they count as the dearest model known")
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None

    @classmethod
    def of(cls, total: Total) -> CostTotal:
        return cls(
            key=total.key,
            calls=total.calls,
            open=total.open,
            unpriced=total.unpriced,
            input_tokens=total.usage.input_tokens,
            output_tokens=total.usage.output_tokens,
            cached_tokens=total.usage.cached_tokens,
            cost_usd=total.usage.cost_usd,
        )


class Costs(Answer):
    by: Grouping
    totals: list[CostTotal]


class Budget(Answer):
    """One budget. Held back is the most that calls in flight can still cost."""

    period: str = Field(examples=["2026-07-03", "2026-07"])
    cap_usd: float | None = Field(description="None when there is no budget")
    spent_usd: float
    held_back_usd: float
    left_usd: float | None
    warned_at: datetime | None
    resets_at: datetime

    @classmethod
    def of(cls, spent: Spent, caps: Caps) -> Budget:
        cap = caps.of(spent.period)
        return cls(
            period=spent.period,
            cap_usd=None if cap is None else cap / NANO,
            spent_usd=spent.settled / NANO,
            held_back_usd=spent.reserved / NANO,
            left_usd=None if cap is None else max(0, cap - spent.settled - spent.reserved) / NANO,
            warned_at=spent.warned_at,
            resets_at=resets_at(spent.period),
        )


class Budgets(Answer):
    """The budgets over every model call of this home."""

    day: Budget
    month: Budget
    warning_share: float


@router.get("/costs", operation_id="costs", responses=failures(), summary="What was spent")
async def costs(
    hub: TheHub,
    caller: Caller,
    by: Annotated[Grouping, Query()] = "day",
    everyone: Annotated[bool, Query(description="Also what others have used; always so when grouped by user")] = False,
) -> Costs:
    """Days are UTC. Costs are unknown (null) where none was ever stated."""
    whose = None if everyone or by == "user" else caller.user_id
    found = await hub.database.read(lambda conn: ledger.totals(conn, whose, by))
    return Costs(by=by, totals=[CostTotal.of(total) for total in found])


@router.get("/costs/budget", operation_id="budget", responses=failures(), summary="How the budgets stand")
async def budget(hub: TheHub) -> Budgets:
    """What is spent of today's and this month's budget, and when they begin anew."""
    caps = hub.ledger.caps
    day, month = await hub.database.read(lambda conn: spending.standing(conn, now()))
    return Budgets(day=Budget.of(day, caps), month=Budget.of(month, caps), warning_share=caps.warning_share)
