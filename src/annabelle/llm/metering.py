"""Meters a model call in the ledger: reserved before, settled after, however it ended (LLM-07, CST-09)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal, TypeVar

from annabelle.core.contract import ModelCall, Reserve, TokenUsage
from annabelle.core.errors import AgentPaused, AnnabelleError, HubUnreachable, ProviderTrouble
from annabelle.core.ports import Ledger
from annabelle.llm.backend import AnswerLost
from annabelle.llm.prices import ModelPriceUsd, price_call, price_ceiling
from annabelle.llm.providers import Endpoint
from annabelle.llm.token_estimate import estimate_tokens
from annabelle.llm.types import ModelRequest

_log = logging.getLogger(__name__)
_LEDGER_SECONDS = 30.0
# Estimates may be off by half, and the protocol adds a few tokens.
_MARGIN = 2
_SPARE_TOKENS = 200
_T = TypeVar("_T")


class CallMeter:
    """Ledger access for one agent. What could not be settled is settled before the next reservation."""

    def __init__(self, ledger: Ledger, agent_id: str) -> None:
        self._ledger, self._agent_id = ledger, agent_id
        self._owed: deque[ModelCall] = deque(maxlen=1000)
        self._settling: set[asyncio.Task[None]] = set()

    async def open(
        self, request: ModelRequest, place: Endpoint, model: str, effort: CallEffort | None = None
    ) -> MeteredCall:
        """Reserves a call; raises if the ledger refuses or cannot be reached."""
        await self._settle_owed()
        booking = MeteredCall(self._agent_id, request, place, model)
        # The first price lookup reads the table from disk.
        wanted = await asyncio.to_thread(booking.reserve, effort or CallEffort())
        try:
            reservation = await _within_bound(self._ledger.reserve(wanted))
        except asyncio.CancelledError:
            await self.settle(
                booking.record(TokenUsage(cost_usd=0.0), "cancelled")
            )  # it may have been reserved already
            raise
        if not reservation.allowed:
            raise AgentPaused(
                reservation.reason or "The cost limit is reached, so the model was not asked.",
                hint=reservation.hint or "Look at the costs: annabelle costs",
            )
        return booking

    async def settle(self, call: ModelCall) -> None:
        """Records the call. If the ledger is unreachable, it is settled later: the answer was paid for."""
        task = asyncio.create_task(self._settle(call))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        await asyncio.shield(task)  # even a cancelled turn must pay for what it used

    async def drain(self) -> None:
        if self._settling:
            await asyncio.wait(self._settling, timeout=_LEDGER_SECONDS)

    async def _settle_owed(self) -> None:
        """Settles what is owed. Pops first, so that concurrent callers do not settle a call twice."""
        while self._owed:
            call = self._owed.popleft()
            try:
                await _within_bound(self._ledger.settle(call))
            except BaseException:
                self._owed.appendleft(call)
                raise

    async def _settle(self, call: ModelCall) -> None:
        try:
            await _within_bound(self._ledger.settle(call))
        except AnnabelleError as error:
            _log.warning("model call %s could not be settled yet: %s", call.call_id, error.message)
            self._owed.append(call)


async def _within_bound(action: Awaitable[_T]) -> _T:
    try:
        async with asyncio.timeout(_LEDGER_SECONDS):
            return await action
    except TimeoutError as error:
        raise HubUnreachable(f"The ledger did not answer within {_LEDGER_SECONDS:g} s.") from error


@dataclass(frozen=True, slots=True)
class CallEffort:
    """How many requests one call makes, and tokens it may write besides the answer."""

    requests: int = 1
    extra_output_tokens: int = 0


class MeteredCall:
    def __init__(self, agent_id: str, request: ModelRequest, place: Endpoint, model: str) -> None:
        self._agent_id, self._request, self._place, self._model = agent_id, request, place, model
        self._began = time.perf_counter()
        self._estimate = estimate_tokens(request.messages, request.tools)
        self._started, self._streamed = False, 0
        self._most = ModelPriceUsd(0.0)

    def reserve(self, effort: CallEffort) -> Reserve:
        """Makes the reservation, for the most the call can cost."""
        request = self._request
        most_input = (self._estimate * _MARGIN + _SPARE_TOKENS) * effort.requests
        most_output = (request.max_tokens or 0) + effort.extra_output_tokens
        self._most = price_ceiling(self._place, self._model, most_input, most_output)
        return Reserve(
            call_id=request.call_id,
            agent_id=self._agent_id,
            user_id=request.user_id,
            message_id=request.message_id,
            goal_id=request.goal_id,
            purpose=request.purpose,
            provider=self._place.provider.name,
            model=self._model,
            estimated_input_tokens=self._estimate,
            max_output_tokens=request.max_tokens,
            reserved_usd=self._most.usd,
            price_known=self._most.known,
        )

    def mark_started(self) -> None:
        """Records that the provider answers, and may charge."""
        self._started = True

    def count_streamed(self, text: str) -> None:
        """Counts streamed text: if the call breaks off, its tokens are estimated from this."""
        self._streamed += len(text)

    def with_price(self, usage: TokenUsage, stated: float | None = None, cache_written: int = 0) -> TokenUsage:
        """Adds the price: as stated by the provider, else from the price table."""
        cost = price_call(self._place, self._model, usage, cache_written).usd if stated is None else stated
        return usage.model_copy(update={"cost_usd": cost})

    def record_lost(self, outcome: Literal["error", "cancelled"], error: AnnabelleError | None = None) -> ModelCall:
        """Record of a call without a complete answer.

        A refused call is free. Any other may have been charged in full, so it counts as the most it can cost, with the
        tokens that were seen.
        """
        refused = isinstance(error, ProviderTrouble) and not isinstance(error, AnswerLost) and not self._started
        usage = TokenUsage(cost_usd=0.0 if refused else self._most.usd)
        if self._streamed:
            seen = {"input_tokens": self._estimate, "output_tokens": self._streamed // 4 + 1}
            usage = usage.model_copy(update=seen)
        code = None if outcome == "cancelled" else (error or AnnabelleError).code
        return self.record(usage, outcome, code)

    def record(
        self, usage: TokenUsage, outcome: Literal["ok", "error", "cancelled"], error_code: str | None = None
    ) -> ModelCall:
        request = self._request
        return ModelCall(
            call_id=request.call_id,
            agent_id=self._agent_id,
            user_id=request.user_id,
            message_id=request.message_id,
            goal_id=request.goal_id,
            trace_id=request.trace_id,
            purpose=request.purpose,
            provider=self._place.provider.name,
            model=self._model,
            usage=usage,
            duration_ms=round((time.perf_counter() - self._began) * 1000, 1),
            outcome=outcome,
            error_code=error_code,
        )
