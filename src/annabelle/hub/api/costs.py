"""`/costs` for people, and the internal ledger for thinkers and servers (CST-09)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import Query, Request
from pydantic import Field
from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import Route

from annabelle.core.contract import ModelCall, Reserve
from annabelle.core.errors import Conflict
from annabelle.core.messages import now
from annabelle.core.settings_file import find_text
from annabelle.embeddings.metering import PURPOSE
from annabelle.hub.api.endpoint import ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.api.settings import save_settings
from annabelle.hub.context import HubContext
from annabelle.hub.costs.monitor import CostWindow
from annabelle.hub.security.identities import CallerIdentity
from annabelle.policy.costs import resets_at
from annabelle.store import cost_control, ledger
from annabelle.store.cost_control import NANO, PeriodSpending, SpendingCaps
from annabelle.store.goals import list_goals
from annabelle.store.ledger import Grouping, UsageTotal

router = ApiRouter("costs")


class CostTotal(ApiAnswer):
    """What one day, agent, goal, model, purpose or person used. `open` calls have not ended yet."""

    key: str = Field(description="Of goals their id; empty for what was done for none")
    title: str | None = Field(default=None, description="Of a goal of yours")
    calls: int
    open: int
    unpriced: int = Field(description="Calls whose price is not known; they count as the dearest model known")
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None


class Costs(ApiAnswer):
    by: Grouping
    totals: list[CostTotal]


class Budget(ApiAnswer):
    """One budget. Held back is the most that calls in flight can still cost."""

    period: str = Field(examples=["2026-07-03", "2026-07"])
    cap_usd: float | None = Field(description="None when there is no budget")
    spent_usd: float
    held_back_usd: float
    left_usd: float | None
    warned_at: datetime | None
    resets_at: datetime

    @classmethod
    def from_spent(cls, spent: PeriodSpending, caps: SpendingCaps) -> Budget:
        cap = caps.cap_for(spent.period)
        return cls(
            period=spent.period,
            cap_usd=None if cap is None else cap / NANO,
            spent_usd=spent.settled / NANO,
            held_back_usd=spent.reserved / NANO,
            left_usd=None if cap is None else max(0, cap - spent.settled - spent.reserved) / NANO,
            warned_at=spent.warned_at,
            resets_at=resets_at(spent.period),
        )


class Budgets(ApiAnswer):
    """The budgets over every model call of this home."""

    day: Budget
    month: Budget
    warning_share: float


@router.get("/costs", **document("What was spent"))
async def costs(
    hub: TheHub,
    caller: Caller,
    by: Annotated[Grouping, Query()] = "day",
    everyone: Annotated[bool, Query(description="Also what others have used; always so when grouped by user")] = False,
) -> Costs:
    """Days are UTC. Costs are unknown (null) where none was ever stated."""
    whose = None if everyone or by == "user" else caller.user_id

    def read(conn: Connection) -> tuple[list[UsageTotal], dict[str, str]]:
        own = list_goals(conn, caller.user_id, archived=True) if by == "goal" else []
        return ledger.sum_usage(conn, whose, by), {one.id: one.title for one in own}

    found, titles = await hub.storage.database.read(read)
    totals = [CostTotal.from_row(one, title=titles.get(one.key), **one.usage.model_dump()) for one in found]
    return Costs(by=by, totals=totals)


@router.get("/costs/budget", **document("How the budgets stand"))
async def budget(hub: TheHub) -> Budgets:
    """What is spent of today's and this month's budget, and when they begin anew."""
    return await _read_budgets(hub)


class BudgetChange(ApiBody):
    """New budgets in US dollars; null for none. One that is not given stays."""

    day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)
    month_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)


@router.post("/costs/budget", **document("Set the budgets", 409, body=BudgetChange))
async def set_budget(hub: TheHub, caller: Caller, request: Request) -> Budgets:
    """They hold from the next call on, and after every start."""
    change = await read_body(request, BudgetChange)
    wanted: dict[str, float | None] = {name: getattr(change, name) for name in sorted(change.model_fields_set)}
    for name in map(_to_setting, wanted):
        if find_text(name, {})[0] == "environment":
            raise Conflict(
                f"{name} is set in the environment, which counts more than what is written in the home.",
                hint="Change it where Annabelle is started.",
                field=name,
            )
    texts = {_to_setting(name): _write_amount(usd) for name, usd in wanted.items()}
    await save_settings(hub, caller, texts)
    caps = hub.services.upkeep.ledger.caps
    amounts = {name: None if usd is None else cost_control.to_nano_usd(usd) for name, usd in wanted.items()}
    day, month = amounts.get("day_usd", caps.day), amounts.get("month_usd", caps.month)
    hub.services.upkeep.ledger.change_caps(replace(caps, day=day, month=month))
    return await _read_budgets(hub)


def _write_amount(usd: float | None) -> str:
    return "" if usd is None else f"{usd:.9f}".rstrip("0").rstrip(".")


def _to_setting(field: str) -> str:
    return f"BUDGET_{field.upper()}"


async def _read_budgets(hub: HubContext) -> Budgets:
    caps = hub.services.upkeep.ledger.caps
    day, month = await hub.storage.database.read(lambda conn: cost_control.read_spending(conn, now()))
    return Budgets(
        day=Budget.from_spent(day, caps), month=Budget.from_spent(month, caps), warning_share=caps.warning_share
    )


class CostStatus(CostWindow):
    """How an agent's spending stands."""

    paused: bool
    pause_reason: str | None


async def reserve(request: Request) -> Response:
    hub: HubContext = request.app.state.hub
    asked = await read_body(request, Reserve)
    reservation = await hub.services.upkeep.ledger.reserve(asked.model_copy(update=_booked_for(request)))
    return Response(reservation.model_dump_json(), media_type="application/json")


async def settle(request: Request) -> Response:
    hub: HubContext = request.app.state.hub
    call = await read_body(request, ModelCall)
    await hub.services.upkeep.ledger.settle(call.model_copy(update=_booked_for(request)))
    return Response(status_code=204)


async def status(request: Request) -> Response:
    """Spending rate and pause of an agent, for its own thinker."""
    hub: HubContext = request.app.state.hub
    agent = hub.agents.status(_agent_id(request))
    state = CostStatus(paused=agent.paused, pause_reason=agent.pause_reason, **agent.costs.model_dump())
    return Response(state.model_dump_json(by_alias=True), media_type="application/json")


def _booked_for(request: Request) -> dict[str, str]:
    """Who a call is booked for. A subagent's call belongs to its parent and the parent's message (AGT-04)."""
    caller: CallerIdentity = request.state.identity
    if caller.kind == "server":
        return {"purpose": PURPOSE}  # servers only book embeddings
    errand = {} if caller.subagent_scope is None else {"message_id": caller.subagent_scope.message_id}
    return {"agent_id": _agent_id(request), **errand}


def _agent_id(request: Request) -> str:
    # The request guard admits only agents here. Use the authenticated id, not a claimed one.
    caller: CallerIdentity = request.state.identity
    assert caller.agent_id is not None
    return caller.agent_id


# Plain routes without OpenAPI: every turn uses them several times.
router.routes[:0] = (
    Route("/internal/ledger/reserve", reserve, methods=["POST"], include_in_schema=False),
    Route("/internal/ledger/settle", settle, methods=["POST"], include_in_schema=False),
    Route("/internal/ledger/status", status, methods=["GET"], include_in_schema=False),
)
