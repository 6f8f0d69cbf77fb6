"""The model service: one per thinker, the only caller of models (LLM-01)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from annabelle.core.contract import AgentProfile
from annabelle.core.errors import ProviderDown
from annabelle.core.home import Home
from annabelle.core.ports import Ledger
from annabelle.core.secrets.redactor import Redactor, SecretMatcher
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trace import TraceFile
from annabelle.llm.call import ModelCaller
from annabelle.llm.failover import (
    FallbackCandidates,
    FallbackChain,
    InterruptedAnswers,
    ProviderHealth,
    ProviderHealthMonitor,
)
from annabelle.llm.metering import CallMeter
from annabelle.llm.model_selection import ModelChooser, ModelSelection
from annabelle.llm.request_cleaner import remove_invisible_from_request
from annabelle.llm.types import (
    Completed,
    FallbackUsed,
    ModelChoice,
    ModelEvent,
    ModelRequest,
    Purpose,
    TextDelta,
    ThinkDelta,
)

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse


_TEXT_PARTS = {"text", "thinking"}


async def redact_stream(events: AsyncIterable[ModelEvent], secrets: SecretMatcher) -> AsyncGenerator[ModelEvent]:
    """Masks secrets in events. Holds back the end of a piece while it may be the beginning of a secret."""
    held: TextDelta | ThinkDelta | None = None
    async for event in events:
        if isinstance(event, TextDelta | ThinkDelta):
            if held is not None and type(held) is not type(event):
                yield replace(held, text=secrets.mask(held.text))
                held = None
            text = secrets.mask(event.text if held is None else held.text + event.text)
            safe = len(text) - secrets.partial_match_length(text)
            held = replace(event, text=text[safe:]) if safe < len(text) else None
            if safe:
                yield replace(event, text=text[:safe])
            continue
        if held is not None:
            yield held
            held = None
        yield (
            replace(event, response=_mask_response(event.response, secrets)) if isinstance(event, Completed) else event
        )
    if held is not None:
        yield held


def _mask_response(response: ModelResponse, secrets: SecretMatcher) -> ModelResponse:
    parts = list(_mask_parts(response, secrets))
    return response if parts == list(response.parts) else replace(response, parts=parts)


def _mask_parts(response: ModelResponse, secrets: SecretMatcher) -> Iterator[object]:
    for part in response.parts:
        if part.part_kind in _TEXT_PARTS:
            content = cast("str", getattr(part, "content", ""))
            yield replace(part, content=secrets.mask(content)) if secrets.found_in(content) else part
        elif part.part_kind == "tool-call" and secrets.found_in(part.args):
            yield replace(part, args=secrets.mask_data(part.args))
        else:
            yield part


_log = logging.getLogger(__name__)


class ModelService:
    """Chooses a model, streams its answers, and meters every call (CST-09)."""

    def __init__(
        self,
        settings: Settings,
        home: Home,
        ledger: Ledger,
        agent: AgentProfile,
        trace: TraceFile | None = None,
        clock: Callable[[], float] = time.monotonic,
        redact: Redactor | None = None,
    ) -> None:
        self._settings, self._trace, self._redact = settings, trace, redact or Redactor()
        self._chooser = ModelChooser(settings, home, agent)
        self._meter = CallMeter(ledger, agent.agent_id)
        self._health = ProviderHealthMonitor(
            settings.llm_breaker_errors, settings.llm_breaker_cooldown_seconds, self._report_health, clock
        )
        self._caller = ModelCaller(settings, agent, self._meter)
        # Read at the start, so that a mistake in it is reported at once.
        self._fallbacks = self._chooser.fallbacks()
        self._interrupted = InterruptedAnswers()
        self._selected: dict[Purpose, ModelSelection] = {}
        self._choosing = asyncio.Lock()

    async def choose(self, purpose: Purpose = "chat") -> ModelChoice:
        """Returns the model in use: configured, else by key, else a running local server, else the embedded one."""
        try:
            return (await self._select(purpose)).choice
        except ProviderDown:
            if not self._fallbacks:
                raise
            return self._fallbacks[0].choice

    async def request(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Streams one call. Ends with `Completed`, or raises one of the provider errors of `core.errors`.

        If the chosen provider is down or limits us, the next one of LLM_FALLBACKS answers, after a `FallbackUsed`. Use
        `contextlib.aclosing` to stop early: that ends the call at the provider and records it as cancelled.
        """
        request, unseen = remove_invisible_from_request(request)
        if unseen:
            self._tell_unseen(request, unseen)
        bounded = replace(request, max_tokens=request.max_tokens or self._settings.llm_max_output_tokens)
        chain = FallbackChain(self._caller, self._health, self._interrupted)
        async with (
            aclosing(chain.ask(bounded, await self._candidates(request.purpose))) as said,
            aclosing(redact_stream(said, self._redact.distinctive_secrets)) as events,
        ):
            async for event in events:
                if isinstance(event, FallbackUsed):
                    self._report_fallback(request, event)
                elif isinstance(event, Completed) and request.purpose != "chat":
                    self._report_side_call(request, event)
                yield event

    def health(self) -> list[ProviderHealth]:
        return self._health.report()

    async def close(self) -> None:
        await self._meter.drain()
        await self._caller.close()

    async def _candidates(self, purpose: Purpose) -> FallbackCandidates:
        try:
            chosen = await self._select(purpose)
        except ProviderDown as error:
            # A local server that is not running cannot say which model it has.
            if not self._fallbacks:
                raise
            return FallbackCandidates(tuple(self._fallbacks), error)
        others = (
            one for one in self._fallbacks if one.choice.model != chosen.choice.model or one.endpoint != chosen.endpoint
        )
        return FallbackCandidates((chosen, *others))

    async def _select(self, purpose: Purpose) -> ModelSelection:
        async with self._choosing:
            if "chat" not in self._selected:
                self._selected["chat"] = await self._chooser.choose()
                _log.info("%s", self._selected["chat"].choice.explanation)
            if purpose not in self._selected:
                self._selected[purpose] = self._chooser.for_purpose(self._selected["chat"], purpose)
            chosen = self._selected[purpose]
        return self._caller.with_known_tool_mode(chosen)

    def _tell_unseen(self, request: ModelRequest, count: int) -> None:
        _log.warning("%d signs that nobody sees were taken out of what the model reads", count)
        if self._trace is not None:
            data: JsonObject = {"call_id": request.call_id, "signs": count}
            self._trace.write("model.unseen_removed", data, trace_id=request.trace_id)

    def _report_fallback(self, request: ModelRequest, event: FallbackUsed) -> None:
        _log.warning("%s", event.sentence)
        if self._trace is not None:
            failed = event.failed
            self._trace.write(
                "model.fallback",
                {
                    "call_id": request.call_id,
                    "from": None if failed is None else f"{failed.provider}:{failed.model}",
                    "to": f"{event.answering.provider}:{event.answering.model}",
                    "reason": event.reason,
                },
                trace_id=request.trace_id,
            )

    def _report_side_call(self, request: ModelRequest, done: Completed) -> None:
        """Traces calls other than chat; the turn's loop traces those."""
        if self._trace is not None:
            data: JsonObject = {
                "call_id": request.call_id,
                "purpose": request.purpose,
                "provider": done.call.provider,
                "model": done.call.model,
                **done.usage.model_dump(),
            }
            self._trace.write("model.called_aside", data, trace_id=request.trace_id)

    def _report_health(self, now: ProviderHealth) -> None:
        _log.info("The provider %s is %s", now.provider, now.state)
        if self._trace is not None:
            self._trace.write("provider.health", now.to_json())
