"""The model service: one per thinker, the only thing that calls a model (LLM-01)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal

from annabelle.core.contract import AgentProfile, ModelCall, Usage
from annabelle.core.errors import AnnabelleError, ProviderFailed
from annabelle.core.home import Home
from annabelle.core.ports import Ledger
from annabelle.core.settings import Settings
from annabelle.llm.backend import Answer, Ask, BackendEvent, ToolsNotSupported
from annabelle.llm.backends import Backends
from annabelle.llm.booking import Booking, Bookkeeper
from annabelle.llm.choose import Chooser, Selection, with_tool_mode
from annabelle.llm.deadline import until
from annabelle.llm.failures import timed_out
from annabelle.llm.plain import PlainTalk
from annabelle.llm.schema_tools import SchemaTools
from annabelle.llm.types import Completed, ModelChoice, ModelEvent, ModelRequest, Purpose

_log = logging.getLogger(__name__)


class ModelService:
    """Chooses a model, streams its answers, and books every call: reserved before, settled after (CST-09)."""

    def __init__(self, settings: Settings, home: Home, ledger: Ledger, agent: AgentProfile) -> None:
        self._settings, self._home, self._agent = settings, home, agent
        self._chooser = Chooser(settings, home, agent)
        self._books = Bookkeeper(ledger, agent.agent_id)
        self._selected: dict[Purpose, Selection] = {}
        self._backends = Backends()
        self._choosing = asyncio.Lock()

    async def choose(self, purpose: Purpose = "chat") -> ModelChoice:
        """The model in force: configured, else by key, else a local server that runs, else the embedded one."""
        return (await self._select(purpose)).choice

    async def request(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Stream one call. Ends with `Completed`, or raises one of the provider errors of `core.errors`.

        Close it (`contextlib.aclosing`) when you stop reading early: that ends the call at the provider and books it
        as cancelled.
        """
        selection = await self._select(request.purpose)
        booking = await self._books.open(request, selection.place, selection.choice.model)
        try:
            answer: Answer | None = None
            async with aclosing(self._stream(request, selection)) as events:
                async for event in events:
                    if isinstance(event, Answer):
                        answer = event
                    else:
                        booking.saw(event.text)
                        yield event
            if answer is None:
                raise ProviderFailed(f"{selection.place.provider.label} gave no answer.")
            usage = await asyncio.to_thread(booking.priced, _usage(answer), answer.cost_usd)
        except AnnabelleError as error:
            await self._books.settle(_lost(booking, "error", error.code))
            raise
        except (asyncio.CancelledError, GeneratorExit):
            await self._books.settle(_lost(booking, "cancelled"))
            raise
        except BaseException:
            await self._books.settle(_lost(booking, "error", AnnabelleError.code))
            raise
        call = booking.record(usage, "ok")
        await self._books.settle(call)
        yield Completed(answer.response, usage, call)

    async def close(self) -> None:
        """Close connections and stop the embedded engine."""
        await self._books.drain()
        await self._backends.close()

    async def _select(self, purpose: Purpose) -> Selection:
        async with self._choosing:
            if "chat" not in self._selected:
                self._selected["chat"] = await self._chooser.choose()
                _log.info("%s", self._selected["chat"].choice.explanation)
            if purpose not in self._selected:
                self._selected[purpose] = self._chooser.for_purpose(self._selected["chat"], purpose)
            return self._selected[purpose]

    async def _stream(self, request: ModelRequest, selection: Selection) -> AsyncGenerator[BackendEvent]:
        summary = request.purpose == "summary"
        seconds = self._settings.llm_summary_timeout_seconds if summary else self._settings.llm_timeout_seconds
        deadline = asyncio.get_running_loop().time() + seconds
        ask = Ask(
            model=selection.choice.model,
            messages=request.messages,
            tools=request.tools,
            tool_choice=request.tool_choice,
            temperature=self._temperature(request),
            max_tokens=request.max_tokens,
            timeout=seconds,
        )
        try:
            async with aclosing(self._asked(selection, ask, deadline)) as events:
                async for event in events:
                    yield event
        except ToolsNotSupported as error:
            if selection.choice.tool_mode != "native":
                raise
            selection = self._without_native_tools(selection, error)
            async with aclosing(self._asked(selection, ask, deadline)) as events:
                async for event in events:
                    yield event

    async def _asked(self, selection: Selection, ask: Ask, deadline: float) -> AsyncGenerator[BackendEvent]:
        backend = await self._backends.get(selection)
        if selection.choice.tool_mode == "none":
            backend = PlainTalk(backend)
        elif selection.choice.tool_mode == "schema":
            backend = SchemaTools(backend)
        bounded = until(deadline, backend.stream(ask), lambda: timed_out(selection.place, ask.timeout))
        async with aclosing(bounded) as events:
            async for event in events:
                yield event

    def _without_native_tools(self, selection: Selection, error: ToolsNotSupported) -> Selection:
        """From now on this model gets its tools by schema; said in the log and in the choice's explanation."""
        _log.warning("%s Tools are given to it by constrained answers from now on.", error.message)
        changed = with_tool_mode(selection, "schema", "It has no function calling, so tools are chosen step by step.")
        for purpose, other in self._selected.items():
            if other.place == selection.place and other.choice.model == selection.choice.model:
                self._selected[purpose] = with_tool_mode(other, "schema", changed.choice.explanation)
        return changed

    def _temperature(self, request: ModelRequest) -> float:
        for wish in (request.temperature, self._agent.temperature):
            if wish is not None:
                return wish
        return self._settings.thinker_temperature


def _usage(answer: Answer) -> Usage:
    used = answer.response.usage
    return Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens, cached_tokens=used.cache_read_tokens)


def _lost(booking: Booking, outcome: Literal["error", "cancelled"], code: str | None = None) -> ModelCall:
    """The record of a call that gave no answer; what was streamed of it is charged all the same."""
    return booking.record(booking.priced(booking.usage_so_far()), outcome, code)
