"""The ledger of model costs. Refuses calls of paused agents and calls over budget (CST-09, TRU-01)."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Sequence
from datetime import timedelta
from types import ModuleType
from typing import Final

from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.contract import ModelCall, Reservation, Reserve
from annabelle.core.errors import AgentPaused, AnnabelleError
from annabelle.core.messages import OWNER, now
from annabelle.core.settings import Settings
from annabelle.embeddings.metering import PURPOSE
from annabelle.hub.agents.config import CostControls
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.conversations.event_log import EventLog, WriteResult
from annabelle.hub.costs.monitor import account_agent, background_account
from annabelle.hub.notices import Notices
from annabelle.policy import costs
from annabelle.store import cost_control, ledger, messages, threads
from annabelle.store.cost_control import AgentState, OverBudget, PeriodSpending, SpendingCaps
from annabelle.store.database import Database
from annabelle.store.ledger import SettledCall
from annabelle.store.outbox import post
from annabelle.store.threads import Thread


class CostAnnouncer:
    """Posts cost messages in the agent's configured chat, else the default one, else the owner's latest."""

    def __init__(self, log: EventLog, settings: Settings) -> None:
        self._log = log
        self._default = (settings.notify_channel, settings.notify_chat_id)

    async def announce(self, key: str, text: str, agent_id: str, controls: CostControls) -> None:
        """Post a message once per key. Does nothing if there is no chat."""
        own = (controls.notify_channel or "", controls.notify_chat_id or "")
        place = own if any(own) else self._default

        def write(conn: Connection) -> WriteResult[None]:
            thread = _find_thread(conn, place, agent_id)
            if thread is None:
                return WriteResult(None, OWNER)
            return WriteResult(None, OWNER, post(conn, thread.id, text, key, {"notice": "costs"}))

        await self._log.transact(write)


def _find_thread(conn: Connection, place: tuple[str, str], agent_id: str) -> Thread | None:
    channel, chat_id = place
    for thread in threads.list_threads(conn, OWNER, limit=1000):
        if thread.ended_at is None and channel in ("", thread.channel) and chat_id in ("", thread.chat_id):
            return thread
    if channel and chat_id:
        return threads.find_or_create_thread(conn, channel=channel, chat_id=chat_id, user_id=OWNER, agent_id=agent_id)
    return None


_log = logging.getLogger(__name__)
COST_CONTROL: Final = "cost control"
_LOOK_SECONDS: Final = 30.0
# Extra time to reserve and settle with a slow or starting hub.
_SLACK_SECONDS: Final = 120.0


class CostLedger:
    """Records reservations and settlements. Both are idempotent."""

    def __init__(
        self, settings: Settings, database: Database, agents: AgentManager, announcer: CostAnnouncer, notices: Notices
    ) -> None:
        self._database, self._agents, self._announcer, self._notices = database, agents, announcer, notices
        self.caps = costs.load_caps(settings)
        longest = max(settings.llm_timeout_seconds, settings.llm_summary_timeout_seconds)
        self._settle_timeout = timedelta(seconds=longest + _SLACK_SECONDS)
        self._notified: set[str] = set()
        self._watching = BackgroundTasks()

    async def start(self) -> None:
        """Settle calls that earlier processes left open, and repeat their announcements."""
        await self._settle_abandoned()
        for state in self._agents.paused_accounts():
            if (state.reason or "").startswith(COST_CONTROL):
                await self._tell_of_pause(state)
        for spent in await self._database.read(lambda conn: cost_control.read_spending(conn, now())):
            if spent.warned_at is not None:
                await self._warn(spent)
        self._watching.start(self._watch_open_calls())

    async def stop(self) -> None:
        await self._watching.stop()

    def change_caps(self, caps: SpendingCaps) -> None:
        """Holds from the next call on."""
        self.caps = caps
        self._clear_notices(())

    async def reserve(self, request: Reserve) -> Reservation:
        """Reserve the maximum cost of a call until it is settled, or refuse the call."""
        if request.purpose == PURPOSE:
            request = await _vectors().priced_request(request)
        background = await self._is_background(request.message_id)
        try:
            self._agents.check_paused(request.agent_id, background=background)
            if background:
                request = request.model_copy(update={"agent_id": background_account(request.agent_id)})
            standing = await self._database.write(lambda conn: ledger.reserve_call(conn, request, self.caps))
        except AgentPaused as paused:
            return _refuse(request, paused.message, paused.hint)
        except OverBudget as over:
            message, hint = costs.explain_refusal(over)
            self._notify_once(f"budget_reached:{over.spent.period}", message)
            return _refuse(request, message, hint)
        if standing == "settled":
            return _refuse(request, "This model call was made and booked before.", None)
        if not request.price_known:
            self._notify_once(
                f"price_unknown:{request.provider}/{request.model}",
                f"The price of {request.model} at {request.provider} is not known, so its calls count as those of the"
                " dearest model known.",
            )
        return Reservation(call_id=request.call_id, allowed=True)

    async def settle(self, call: ModelCall) -> None:
        if call.purpose == PURPOSE:
            call = await _vectors().priced_call(call)
        if await self._is_background(call.message_id):
            call = call.model_copy(update={"agent_id": background_account(call.agent_id)})
        settled = await self._database.write(lambda conn: ledger.settle_call(conn, call, self.caps))
        if settled is not None:
            await self._count_calls([settled])

    async def _is_background(self, message_id: str | None) -> bool:
        """Whether a call is for work in the background."""
        if message_id is None:
            return False
        return await self._database.read(lambda conn: messages.is_background(conn, message_id))

    async def _settle_abandoned(self) -> None:
        before = now() - self._settle_timeout
        given_up = await self._database.write(lambda conn: ledger.settle_abandoned(conn, before, self.caps))
        if given_up:
            _log.warning("%d model calls were never settled; they count as what was reserved for them", len(given_up))
            await self._count_calls(given_up)

    async def _watch_open_calls(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._clear_notices(cost_control.periods_of(now()))
            try:
                await self._settle_abandoned()
            except AnnabelleError as error:
                _log.warning("Open model calls could not be looked through: %s", error.message)

    async def _count_calls(self, calls: Sequence[SettledCall]) -> None:
        for call in calls:
            # Calls of servers have no agent to pause. The budgets limit them.
            known = self._agents.registry.config.agent(account_agent(call.agent_id)) is not None
            reason = self._agents.costs.count(call.agent_id, call.usage) if known else None
            try:
                if reason is not None and not self._agents.is_paused(call.agent_id):
                    await self._tell_of_pause(
                        await self._agents.pause_account(call.agent_id, f"{COST_CONTROL} ({reason})")
                    )
                for spent in call.warnings:
                    await self._warn(spent)
            except AnnabelleError as error:
                # The call is recorded, and the next one checks the window again.
                _log.error("Cost control could not act on %s: %s", call.agent_id, error.message)

    async def _tell_of_pause(self, state: AgentState) -> None:
        agent_id = account_agent(state.agent_id)
        if agent_id == state.agent_id:
            what = f"I have paused the agent {agent_id}: {state.reason}. It answers nothing until you let it go on"
        else:
            what = f"I have paused what {agent_id} does by itself: {state.reason}. No skill runs until you let it go on"
        text = f"{what}: annabelle costs resume {agent_id} --reset-window"
        await self._announcer.announce(
            f"paused:{state.agent_id}:{state.paused_at}", text, agent_id, self._controls(agent_id)
        )

    async def _warn(self, spent: PeriodSpending) -> None:
        cap = self.caps.cap_for(spent.period)
        if cap is None:
            return
        text, agent_id = costs.explain_warning(spent, cap), self._agents.registry.config.default.agent_id
        self._notified.add(f"budget:{spent.period}")
        self._notices.add(f"budget:{spent.period}", text, level="warning", tell_owner=False)
        await self._announcer.announce(f"budget:{spent.period}", text, agent_id, self._controls(agent_id))

    def _notify_once(self, topic: str, text: str) -> None:
        if topic not in self._notified:
            self._notified.add(topic)
            self._notices.add(topic, text, level="warning")

    def _clear_notices(self, current: tuple[str, ...]) -> None:
        """Those of budgets, but for the current periods."""
        for topic in [one for one in self._notified if one.startswith("budget") and not one.endswith(current)]:
            self._notified.discard(topic)
            self._notices.clear(topic)

    def _controls(self, agent_id: str) -> CostControls:
        return self._agents.registry.cost_controls(agent_id)


def _vectors() -> ModuleType:
    # Loading the price table takes a third of a second, and most homes use local embeddings.
    return importlib.import_module("annabelle.hub.costs.vectors")


def _refuse(request: Reserve, reason: str, hint: str | None) -> Reservation:
    return Reservation(call_id=request.call_id, allowed=False, reason=reason, hint=hint)
