"""The one book of model costs, kept by the hub for every process that calls a model (CST-09).

It says no before money is spent: for an agent that is paused, and for a call that could pass a budget (TRU-01).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Sequence
from datetime import timedelta
from types import ModuleType
from typing import Final

from annabelle.core.contract import ModelCall, Reservation, Reserve
from annabelle.core.errors import AgentPaused, AnnabelleError
from annabelle.core.messages import now
from annabelle.core.settings import Settings
from annabelle.embeddings.books import PURPOSE
from annabelle.hub.agents.config import CostControls
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.costs.announcer import Announcer
from annabelle.hub.notices import Notices
from annabelle.policy.costs import budgets
from annabelle.store import ledger, spending
from annabelle.store.database import Database
from annabelle.store.ledger import Settled
from annabelle.store.spending import OverBudget, Spent

_log = logging.getLogger(__name__)
COST_CONTROL: Final = "cost control"
_LOOK_SECONDS: Final = 30.0
# Beside the model's own time: reserving and settling at a hub that may be slow or just starts.
_SLACK_SECONDS: Final = 120.0


class StoredLedger:
    """Writes reservations and settlements down; both may be told twice."""

    def __init__(
        self, settings: Settings, database: Database, agents: AgentManager, announcer: Announcer, notices: Notices
    ) -> None:
        self._database, self._agents, self._announcer, self._notices = database, agents, announcer, notices
        self.caps = budgets.caps_of(settings)
        longest = max(settings.llm_timeout_seconds, settings.llm_summary_timeout_seconds)
        self._patience = timedelta(seconds=longest + _SLACK_SECONDS)
        self._told: set[str] = set()
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Book what earlier processes left open, and say again what they may not have come to say."""
        await self._give_up()
        for agent in self._agents.statuses():
            if agent.paused and (agent.pause_reason or "").startswith(COST_CONTROL):
                await self._tell_of_pause(agent.agent_id)
        for spent in await self._database.read(lambda conn: spending.standing(conn, now())):
            if spent.warned_at is not None:
                await self._warn(spent)
        self._looking = asyncio.create_task(self._look())

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    async def reserve(self, request: Reserve) -> Reservation:
        """Whether a call may be made; if so, the most it can cost is held back until it is settled."""
        if request.purpose == PURPOSE:
            request = await _vectors().priced_request(request)
        try:
            self._agents.check_paused(request.agent_id)
            standing = await self._database.write(lambda conn: ledger.reserve(conn, request, self.caps))
        except AgentPaused as paused:
            return _refused(request, paused.message, paused.hint)
        except OverBudget as over:
            message, hint = budgets.refusal(over)
            self._tell_once(f"budget_reached:{over.spent.period}", message)
            return _refused(request, message, hint)
        if standing == "settled":
            return _refused(request, "This model call was made and booked before.", None)
        if not request.price_known:
            self._tell_once(
                f"price_unknown:{request.provider}/{request.model}",
                f"The price of {request.model} at {request.provider} is not known, so its calls count as those of the"
                " dearest model known.",
            )
        return Reservation(call_id=request.call_id, allowed=True)

    async def settle(self, call: ModelCall) -> None:
        if call.purpose == PURPOSE:
            call = await _vectors().priced_call(call)
        settled = await self._database.write(lambda conn: ledger.settle(conn, call, self.caps))
        if settled is not None:
            await self._count([settled])

    async def _give_up(self) -> None:
        before = now() - self._patience
        given_up = await self._database.write(lambda conn: ledger.give_up(conn, before, self.caps))
        if given_up:
            _log.warning("%d model calls were never settled; they count as what was reserved for them", len(given_up))
            await self._count(given_up)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._clear_notices()
            try:
                await self._give_up()
            except AnnabelleError as error:
                _log.warning("Open model calls could not be looked through: %s", error.message)

    async def _count(self, calls: Sequence[Settled]) -> None:
        for call in calls:
            # What a server spends has no agent to be paused; the budgets bound it.
            known = self._agents.config.agent(call.agent_id) is not None
            reason = self._agents.costs.count(call.agent_id, call.usage) if known else None
            try:
                if reason is not None and not self._agents.is_paused(call.agent_id):
                    await self._agents.pause(call.agent_id, f"{COST_CONTROL} ({reason})")
                    await self._tell_of_pause(call.agent_id)
                for spent in call.warnings:
                    await self._warn(spent)
            except AnnabelleError as error:
                # The call is booked, and with the next one the window is judged again.
                _log.error("Cost control could not act on %s: %s", call.agent_id, error.message)

    async def _tell_of_pause(self, agent_id: str) -> None:
        status = self._agents.status(agent_id)
        text = (
            f"I have paused the agent {agent_id}: {status.pause_reason}. It answers nothing until you let it go on:"
            f" annabelle costs resume {agent_id} --reset-window"
        )
        await self._announcer.say(f"paused:{agent_id}:{status.paused_at}", text, agent_id, self._controls(agent_id))

    async def _warn(self, spent: Spent) -> None:
        cap = self.caps.of(spent.period)
        if cap is None:
            return
        text, agent_id = budgets.warning(spent, cap), self._agents.config.default.agent_id
        self._told.add(f"budget:{spent.period}")
        self._notices.add(f"budget:{spent.period}", text, level="warning")
        await self._announcer.say(f"budget:{spent.period}", text, agent_id, self._controls(agent_id))

    def _tell_once(self, topic: str, text: str) -> None:
        if topic not in self._told:
            self._told.add(topic)
            self._notices.add(topic, text, level="warning")

    def _clear_notices(self) -> None:
        """Say no more of the budgets of days and months that are over."""
        current = spending.periods(now())
        for topic in [one for one in self._told if one.startswith("budget") and not one.endswith(current)]:
            self._told.discard(topic)
            self._notices.clear(topic)

    def _controls(self, agent_id: str) -> CostControls:
        return self._agents.cost_controls(agent_id)


def _vectors() -> ModuleType:
    # The price table takes a third of a second to load, and most homes make their vectors themselves.
    return importlib.import_module("annabelle.hub.costs.vectors")


def _refused(request: Reserve, reason: str, hint: str | None) -> Reservation:
    return Reservation(call_id=request.call_id, allowed=False, reason=reason, hint=hint)
