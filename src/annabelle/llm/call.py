"""One call of one model: spaced from the last one, booked before and after, bounded in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from annabelle.core.contract import AgentProfile, Usage
from annabelle.core.errors import AnnabelleError, ProviderFailed
from annabelle.core.settings import Settings
from annabelle.llm.backend import Answer, Ask, BackendEvent, Begun, ToolsNotSupported
from annabelle.llm.backends import Backends
from annabelle.llm.booking import Bookkeeper
from annabelle.llm.choose import Selection, with_tool_mode
from annabelle.llm.deadline import until
from annabelle.llm.estimate import MOST_TOKENS
from annabelle.llm.failures import timed_out
from annabelle.llm.plain import PlainTalk
from annabelle.llm.schema_tools import SCHEMA_EFFORT, SchemaTools
from annabelle.llm.spacing import Spacing, gap_for
from annabelle.llm.types import Completed, ModelRequest, TextDelta, ThinkDelta

_log = logging.getLogger(__name__)
_NO_FUNCTION_CALLING = "It has no function calling, so tools are chosen step by step."

CallEvent = TextDelta | ThinkDelta | Completed


class Caller:
    """Makes calls for one agent, and keeps connections open between them."""

    def __init__(self, settings: Settings, agent: AgentProfile, books: Bookkeeper) -> None:
        self._settings, self._agent, self._books = settings, agent, books
        self._backends = Backends()
        self._spacing = Spacing()
        self._without_tools: set[tuple[str, str]] = set()

    def as_known(self, selection: Selection) -> Selection:
        """The selection, with its tools given the way its model was found to need."""
        if _key(selection) in self._without_tools and selection.choice.tool_mode == "native":
            return with_tool_mode(selection, "schema", _NO_FUNCTION_CALLING)
        return selection

    async def may_start(self, selection: Selection) -> None:
        """Wait until the agent's last call began long enough ago."""
        await self._spacing.wait(gap_for(self._settings, selection.place))

    async def call(self, request: ModelRequest, selection: Selection) -> AsyncGenerator[CallEvent]:
        """Stream one call; whatever comes of it is in the ledger.

        A model that turns out to have no function calling is asked again in another way. That is a call of its own:
        it may be several questions, and only one was reserved.
        """
        selection = self.as_known(selection)
        try:
            async with aclosing(self._booked(request, selection)) as events:
                async for event in events:
                    yield event
            return
        except ToolsNotSupported as error:
            if selection.choice.tool_mode != "native":
                raise
            _log.warning("%s Tools are given to it by constrained answers from now on.", error.message)
            self._without_tools.add(_key(selection))
        again = replace(request, call_id=f"{request.call_id}.schema")
        async with aclosing(self._booked(again, self.as_known(selection))) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._backends.close()

    async def _booked(self, request: ModelRequest, selection: Selection) -> AsyncGenerator[CallEvent]:
        effort = SCHEMA_EFFORT if selection.choice.tool_mode == "schema" and request.tools else None
        booking = await self._books.open(request, selection.place, selection.choice.model, effort)
        try:
            answer: Answer | None = None
            async with aclosing(self._stream(request, selection)) as events:
                async for event in events:
                    if isinstance(event, Answer):
                        answer = event
                    elif isinstance(event, Begun):
                        booking.begun()
                    else:
                        booking.saw(event.text)
                        yield event
            if answer is None:
                raise ProviderFailed(f"{selection.place.provider.label} gave no answer.")
            written = answer.response.usage.cache_write_tokens
            usage = await asyncio.to_thread(booking.priced, _usage(answer), answer.cost_usd, written)
        except AnnabelleError as error:
            await self._books.settle(booking.lost("error", error))
            raise
        except (asyncio.CancelledError, GeneratorExit):
            await self._books.settle(booking.lost("cancelled"))
            raise
        except BaseException:
            await self._books.settle(booking.lost("error"))
            raise
        call = booking.record(usage, "ok")
        await self._books.settle(call)
        yield Completed(answer.response, usage, call)

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
        backend = await self._backends.get(selection)
        if selection.choice.tool_mode == "none":
            backend = PlainTalk(backend)
        elif selection.choice.tool_mode == "schema":
            backend = SchemaTools(backend)
        bounded = until(deadline, backend.stream(ask), lambda: timed_out(selection.place, ask.timeout))
        async with aclosing(bounded) as events:
            async for event in events:
                yield event

    def _temperature(self, request: ModelRequest) -> float:
        for wish in (request.temperature, self._agent.temperature):
            if wish is not None:
                return wish
        return self._settings.thinker_temperature


def _key(selection: Selection) -> tuple[str, str]:
    return selection.place.base_url, selection.choice.model


def _usage(answer: Answer) -> Usage:
    """What the provider counted. A number that no database can hold would keep the call from ever being settled."""
    used = answer.response.usage
    return Usage(
        input_tokens=min(used.input_tokens, MOST_TOKENS),
        output_tokens=min(used.output_tokens, MOST_TOKENS),
        cached_tokens=min(used.cache_read_tokens, MOST_TOKENS),
    )
