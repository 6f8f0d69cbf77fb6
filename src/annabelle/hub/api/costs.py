"""`GET /costs`: what model calls have used."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from annabelle.hub.api.documented import Answer, Caller, TheHub, failures
from annabelle.store import ledger
from annabelle.store.ledger import Grouping

router = APIRouter(tags=["costs"])


class CostTotal(Answer):
    """What one day, agent or model used. `open` calls have not ended yet."""

    key: str
    calls: int
    open: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None


class Costs(Answer):
    by: Grouping
    totals: list[CostTotal]


@router.get("/costs", operation_id="costs", responses=failures(), summary="What was spent")
async def costs(hub: TheHub, caller: Caller, by: Annotated[Grouping, Query()] = "day") -> Costs:
    """Days are UTC. Costs are unknown (null) where no price is known."""
    found = await hub.database.read(lambda conn: ledger.totals(conn, caller.user_id, by))
    totals = [
        CostTotal(
            key=total.key,
            calls=total.calls,
            open=total.open,
            input_tokens=total.usage.input_tokens,
            output_tokens=total.usage.output_tokens,
            cached_tokens=total.usage.cached_tokens,
            cost_usd=total.usage.cost_usd,
        )
        for total in found
    ]
    return Costs(by=by, totals=totals)
