"""One model call: spaced from the previous one (CST-07), metered, and limited in time (LLM-09)."""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from annabelle.core.contract import AgentProfile, TokenUsage
from annabelle.core.errors import AnnabelleError, ConfigMistake, ProviderFailed
from annabelle.core.settings import Settings
from annabelle.llm.backend import (
    AnswerStarted,
    Backend,
    BackendAnswer,
    BackendEvent,
    ModelQuestion,
    ToolsNotSupported,
    timeout_error,
)
from annabelle.llm.metering import CallMeter
from annabelle.llm.model_selection import BETTER_MODEL_HINT, ModelSelection, with_tool_mode
from annabelle.llm.model_tools import SCHEMA_EFFORT, SchemaToolBackend, ToollessBackend
from annabelle.llm.openai_backend import OpenAiBackend
from annabelle.llm.providers import Endpoint, is_loopback
from annabelle.llm.token_estimate import MOST_TOKENS
from annabelle.llm.types import Completed, ModelRequest, TextDelta, ThinkDelta

if TYPE_CHECKING:
    import annabelle.llm.anthropic_backend as anthropic_module
    import annabelle.llm.embedded.engine as embedded_module


class BackendPool:
    """Keeps connections open between calls; `close` also stops the embedded engine."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Backend] = {}
        self._making = asyncio.Lock()

    async def get(self, selection: ModelSelection) -> Backend:
        embedded = selection.weights is not None
        key = (selection.choice.provider, selection.choice.model if embedded else "")
        async with self._making:
            if key not in self._made:
                self._made[key] = await self._make(selection)
            return self._made[key]

    async def close(self) -> None:
        made, self._made = self._made, {}
        for backend in made.values():
            await backend.close()

    async def _make(self, selection: ModelSelection) -> Backend:
        if selection.weights is not None:
            try:
                module = await asyncio.to_thread(importlib.import_module, "annabelle.llm.embedded.engine")
            except ImportError as error:
                raise ConfigMistake(
                    "No model is configured, and this install came without the embedded engine.",
                    hint=f"Install it: pip install 'annabelle[embedded]'. {BETTER_MODEL_HINT}",
                ) from error
            return cast("embedded_module", module).make_backend(selection.weights)
        if selection.endpoint.provider.protocol == "anthropic":
            module = await asyncio.to_thread(importlib.import_module, "annabelle.llm.anthropic_backend")
            return cast("anthropic_module", module).AnthropicBackend(selection.endpoint)
        return OpenAiBackend(selection.endpoint)


_T = TypeVar("_T")


async def stream_until(
    deadline: float, source: AsyncGenerator[_T], late: Callable[[], Exception]
) -> AsyncGenerator[_T]:
    """Yields from `source`; at the deadline (loop time) closes it and raises `late()`.

    Each pull has its own timeout: one held across a `yield` would cancel the reader instead.
    """
    async with aclosing(source):
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    item = await anext(source)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise late() from error
            yield item


SERVICE_SECONDS = 1.0

Sleep = Callable[[float], Awaitable[None]]


def spacing_seconds(settings: Settings, place: Endpoint) -> float:
    """Returns the configured spacing; else one second for a service, and none for a local model."""
    if settings.llm_spacing_seconds is not None:
        return settings.llm_spacing_seconds
    return 0.0 if place.provider.local or is_loopback(place.base_url) else SERVICE_SECONDS


class CallSpacing:
    """Lets callers start one by one in order; cancelled waits do not delay the others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._clock, self._sleep = clock, sleep
        self._last: float | None = None
        # Held only while waiting to start, not while waiting for an answer.
        self._turn = asyncio.Lock()

    async def wait(self, gap: float) -> None:
        """Waits until a call may start; it counts as started then."""
        if gap <= 0:
            self._last = self._clock()
            return
        async with self._turn:
            # A loop, because a call without a gap may have started meanwhile.
            while self._last is not None and (left := self._last + gap - self._clock()) > 0:
                await self._sleep(left)
            self._last = self._clock()


_log = logging.getLogger(__name__)
_NO_FUNCTION_CALLING = "It has no function calling, so tools are chosen step by step."

CallEvent = TextDelta | ThinkDelta | Completed


class ModelCaller:
    """Makes calls for one agent, keeping connections open between them."""

    def __init__(self, settings: Settings, agent: AgentProfile, books: CallMeter) -> None:
        self._settings, self._agent, self._meter = settings, agent, books
        self._backends = BackendPool()
        self._spacing = CallSpacing()
        self._without_tools: set[tuple[str, str]] = set()

    def with_known_tool_mode(self, selection: ModelSelection) -> ModelSelection:
        """Returns the selection, with the tool mode its model was found to need."""
        if _model_key(selection) in self._without_tools and selection.choice.tool_mode == "native":
            return with_tool_mode(selection, "schema", _NO_FUNCTION_CALLING)
        return selection

    async def wait_to_start(self, selection: ModelSelection) -> None:
        await self._spacing.wait(spacing_seconds(self._settings, selection.endpoint))

    async def call(self, request: ModelRequest, selection: ModelSelection) -> AsyncGenerator[CallEvent]:
        """Streams one call and records it in the ledger, however it ends.

        A model without function calling is asked again in another way. That is a separate call: it may need several
        requests, and only one was reserved.
        """
        selection = self.with_known_tool_mode(selection)
        try:
            async with aclosing(self._metered_call(request, selection)) as events:
                async for event in events:
                    yield event
            return
        except ToolsNotSupported as error:
            if selection.choice.tool_mode != "native":
                raise
            _log.warning("%s Tools are given to it by constrained answers from now on.", error.message)
            self._without_tools.add(_model_key(selection))
        again = replace(request, call_id=f"{request.call_id}.schema")
        async with aclosing(self._metered_call(again, self.with_known_tool_mode(selection))) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._backends.close()

    async def _metered_call(self, request: ModelRequest, selection: ModelSelection) -> AsyncGenerator[CallEvent]:
        effort = SCHEMA_EFFORT if selection.choice.tool_mode == "schema" and request.tools else None
        booking = await self._meter.open(request, selection.endpoint, selection.choice.model, effort)
        try:
            answer: BackendAnswer | None = None
            async with aclosing(self._stream(request, selection)) as events:
                async for event in events:
                    if isinstance(event, BackendAnswer):
                        answer = event
                    elif isinstance(event, AnswerStarted):
                        booking.mark_started()
                    else:
                        booking.count_streamed(event.text)
                        yield event
            if answer is None:
                raise ProviderFailed(f"{selection.endpoint.provider.label} gave no answer.")
            written = answer.response.usage.cache_write_tokens
            usage = await asyncio.to_thread(booking.with_price, _token_usage(answer), answer.cost_usd, written)
        except AnnabelleError as error:
            await self._meter.settle(booking.record_lost("error", error))
            raise
        except (asyncio.CancelledError, GeneratorExit):
            await self._meter.settle(booking.record_lost("cancelled"))
            raise
        except BaseException:
            await self._meter.settle(booking.record_lost("error"))
            raise
        call = booking.record(usage, "ok")
        await self._meter.settle(call)
        yield Completed(answer.response, usage, call)

    async def _stream(self, request: ModelRequest, selection: ModelSelection) -> AsyncGenerator[BackendEvent]:
        summary = request.purpose == "summary"
        seconds = self._settings.llm_summary_timeout_seconds if summary else self._settings.llm_timeout_seconds
        deadline = asyncio.get_running_loop().time() + seconds
        ask = ModelQuestion(
            model=selection.choice.model,
            messages=request.messages,
            tools=request.tools,
            tool_choice=request.tool_choice,
            temperature=self._temperature(request),
            max_tokens=request.max_tokens,
            timeout=seconds,
            purpose=request.purpose,
        )
        backend = await self._backends.get(selection)
        if selection.choice.tool_mode == "none":
            backend = ToollessBackend(backend)
        elif selection.choice.tool_mode == "schema":
            backend = SchemaToolBackend(backend)
        bounded = stream_until(deadline, backend.stream(ask), lambda: timeout_error(selection.endpoint, ask.timeout))
        async with aclosing(bounded) as events:
            async for event in events:
                yield event

    def _temperature(self, request: ModelRequest) -> float:
        for wish in (request.temperature, self._agent.temperature):
            if wish is not None:
                return wish
        return self._settings.thinker_temperature


def _model_key(selection: ModelSelection) -> tuple[str, str]:
    return selection.endpoint.base_url, selection.choice.model


def _token_usage(answer: BackendAnswer) -> TokenUsage:
    """Returns the provider's counts, capped: a number too large for the database could never be settled."""
    used = answer.response.usage
    return TokenUsage(
        input_tokens=min(used.input_tokens, MOST_TOKENS),
        output_tokens=min(used.output_tokens, MOST_TOKENS),
        cached_tokens=min(used.cache_read_tokens, MOST_TOKENS),
    )
