"""One request along a chain of models: when one is down, the next answers, and never without saying so (LLM-06)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from annabelle.core.errors import ProviderDown, ProviderRateLimited, ProviderTrouble
from annabelle.llm.backend import KeyRefused
from annabelle.llm.call import Caller, CallEvent
from annabelle.llm.choose import Selection
from annabelle.llm.health import CallGuard, Health
from annabelle.llm.types import Completed, FellBack, ModelChoice, ModelEvent, ModelRequest

# A bad request stays bad elsewhere, and an answer that made no sense is tried again by whoever asked.
_ANOTHER_MAY_ANSWER: Final = (ProviderDown, ProviderRateLimited, KeyRefused)
_REMEMBERED: Final = 100


@dataclass(frozen=True, slots=True)
class Candidates:
    """Who may answer, in order; `trouble` is why the model of choice is not among them, if it is not."""

    selections: tuple[Selection, ...]
    trouble: ProviderDown | None = None


@dataclass(frozen=True, slots=True)
class _Failed:
    choice: ModelChoice | None
    label: str
    error: ProviderTrouble


class BrokenOff:
    """Which provider broke off in the middle of an answer, by message: its next try goes to another one.

    What was streamed can not be taken back within one call, so the call fails and the caller tries again.
    """

    def __init__(self) -> None:
        self._by_message: dict[str, tuple[str, ProviderTrouble]] = {}

    def note(self, message_id: str | None, selection: Selection, error: ProviderTrouble) -> None:
        if message_id is not None:
            self._by_message[message_id] = (selection.place.provider.name, error)
            while len(self._by_message) > _REMEMBERED:
                del self._by_message[next(iter(self._by_message))]

    def take(self, message_id: str | None) -> tuple[str, ProviderTrouble] | None:
        return None if message_id is None else self._by_message.pop(message_id, None)


class FallbackChain:
    """Asks one after the other; each call has an id and a row in the ledger of its own."""

    def __init__(self, caller: Caller, health: Health, broken_off: BrokenOff) -> None:
        self._caller, self._health, self._broken_off = caller, health, broken_off
        self._failed: list[_Failed] = []
        self._announced = 0

    async def ask(self, request: ModelRequest, candidates: Candidates) -> AsyncGenerator[ModelEvent]:
        if candidates.trouble is not None:
            self._failed.append(_Failed(None, "", candidates.trouble))
        avoided = self._broken_off.take(request.message_id) if len(candidates.selections) > 1 else None
        for number, selection in enumerate(candidates.selections):
            error = avoided[1] if avoided and avoided[0] == selection.place.provider.name else None
            guard = await self._admitted(selection) if error is None else error
            if not isinstance(guard, CallGuard):
                self._note(selection, guard)
                continue
            call = replace(request, call_id=f"{request.call_id}.f{number}") if number else request
            last = number == len(candidates.selections) - 1
            spoke = False
            try:
                async with aclosing(self._guarded(call, selection, guard)) as events:
                    async for event in events:
                        spoke = spoke or not isinstance(event, FellBack)
                        yield event
                return
            except _ANOTHER_MAY_ANSWER as error:
                if spoke and not last:
                    self._broken_off.note(request.message_id, selection, error)
                if spoke:
                    error.next_try = self._next_try(candidates)
                    raise
                self._note(selection, error)
        verdict = self._verdict()
        verdict.next_try = self._next_try(candidates)
        raise verdict

    async def _admitted(self, selection: Selection) -> CallGuard | ProviderDown:
        """Leave to call now, after the wait there has to be between two calls, or why there is none."""
        provider = selection.place.provider
        refusal = self._health.refusal(provider)
        if refusal is not None:
            return refusal
        await self._caller.may_start(selection)
        guard = self._health.enter(provider)
        if guard is None:
            return self._health.refusal(provider) or ProviderDown(f"{provider.label} is left alone for now.")
        return guard

    async def _guarded(
        self, request: ModelRequest, selection: Selection, guard: CallGuard
    ) -> AsyncGenerator[CallEvent | FellBack]:
        try:
            if len(self._failed) > self._announced:
                first = self._failed[self._announced]
                self._announced = len(self._failed)
                yield FellBack(first.choice, selection.choice, first.error.message)
            async with aclosing(self._caller.call(request, selection)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        guard.succeeded()
                    yield event
        except ProviderTrouble as error:
            guard.failed(error)
            raise
        finally:
            guard.left()

    def _next_try(self, candidates: Candidates) -> float | None:
        """When the first of them may be called again, if none may now: a try before that would be refused here."""
        return min(self._health.wait(one.place.provider) for one in candidates.selections) or None

    def _note(self, selection: Selection, error: ProviderTrouble) -> None:
        self._failed.append(_Failed(selection.choice, selection.place.provider.label, error))

    def _verdict(self) -> ProviderTrouble:
        """The error of one that may work later, if there is one: it decides whether another try makes sense."""
        worth = [failed.error for failed in self._failed if failed.error.retry != "none"]
        error = (worth or [failed.error for failed in self._failed])[0]
        if len(self._failed) == 1:
            return error
        others = ", ".join(dict.fromkeys(f.label for f in self._failed if f.error is not error and f.label))
        return type(error)(f"{error.message} No other one answered either ({others}).", hint=error.hint)
