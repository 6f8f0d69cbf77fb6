"""Failover between models: health and circuit breaker of each provider, and the fallback chain (LLM-06, CST-06)."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal

from annabelle.core.errors import ProviderDown, ProviderRateLimited, ProviderTrouble
from annabelle.core.tools import JsonObject
from annabelle.llm.backend import KeyRefused
from annabelle.llm.call import CallEvent, ModelCaller
from annabelle.llm.model_selection import ModelSelection
from annabelle.llm.providers import ModelProvider
from annabelle.llm.types import Completed, FallbackUsed, ModelChoice, ModelEvent, ModelRequest

BreakerState = Literal["closed", "open", "probing"]


class BreakerPass:
    """Permission for one call. Only the first report of how it went counts."""

    def __init__(self, breaker: CircuitBreaker, probe: bool) -> None:
        self._breaker, self._probe, self._reported = breaker, probe, False

    def succeeded(self) -> None:
        self._report(self._breaker.note_success)

    def failed(self) -> None:
        """The network or the provider failed; refusals and rate limits do not count."""
        self._report(self._breaker.note_failure)

    def abandoned(self) -> None:
        """The call says nothing about the provider, for example because it was cancelled."""
        self._report(self._breaker.note_abandoned)

    def _report(self, note: Callable[[bool], None]) -> None:
        if not self._reported:
            self._reported = True
            note(self._probe)


class CircuitBreaker:
    """Opens after a net number of errors: a success cancels out one of them.

    While open it admits no call until the cool-down is over, then one at a time until one succeeds.
    """

    def __init__(self, errors: int, cooldown: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._cooldown, self._clock = errors, cooldown, clock
        self._opened_at: float | None = None
        self._probing = False
        self.errors = 0

    @property
    def state(self) -> BreakerState:
        if self._opened_at is None:
            return "closed"
        return "probing" if self._probing else "open"

    @property
    def wait_seconds(self) -> float:
        """Seconds until the next call may try; 0 if it may now, or one is trying."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self._cooldown - self._clock())

    @property
    def admits(self) -> bool:
        return self._opened_at is None or (not self._probing and self.wait_seconds == 0)

    def enter(self) -> BreakerPass | None:
        """Returns permission for a call, or None."""
        if not self.admits:
            return None
        probe = self._opened_at is not None
        self._probing = probe
        return BreakerPass(self, probe)

    def note_success(self, probe: bool) -> None:
        # A call that began before it opened says nothing about now: only a probe closes it.
        if probe:
            self._opened_at, self._probing = None, False
        if self._opened_at is None:
            self.errors = max(0, self.errors - 1)

    def note_failure(self, probe: bool) -> None:
        if probe:
            self._opened_at, self._probing = self._clock(), False
        elif self._opened_at is None:
            self.errors += 1
            if self.errors >= self._limit:
                self._opened_at = self._clock()

    def note_abandoned(self, probe: bool) -> None:
        if probe:
            self._probing = False


HealthState = Literal["ok", "degraded", "open", "probing"]


@dataclass(frozen=True, slots=True)
class ProviderHealth:
    """Current health of a provider. `degraded`: it had errors lately, but is still called."""

    provider: str
    state: HealthState
    errors: int
    last_error: str | None
    next_try_seconds: float | None

    def to_json(self) -> JsonObject:
        return asdict(self)


class CallGuard:
    """Reports how an admitted call went."""

    def __init__(self, passed: BreakerPass, record: _ProviderRecord) -> None:
        self._pass, self._record = passed, record

    def succeeded(self) -> None:
        self._pass.succeeded()
        self._record.note(None)

    def failed(self, error: ProviderTrouble) -> None:
        """Only errors of the network or the provider count for the breaker."""
        if isinstance(error, ProviderDown):
            self._pass.failed()
        else:
            self._pass.abandoned()
        self._record.note(error)

    def abandoned(self) -> None:
        """The call ended for another reason; no effect after `succeeded` or `failed`."""
        self._pass.abandoned()


class _ProviderRecord:
    def __init__(
        self, provider: ModelProvider, breaker: CircuitBreaker, told: Callable[[ProviderHealth], None]
    ) -> None:
        self.provider, self.breaker, self._on_change = provider, breaker, told
        self._trouble: str | None = None
        self._last_error: str | None = None
        self._state: HealthState = "ok"

    def note(self, error: ProviderTrouble | None) -> None:
        self._trouble = None if error is None else error.message
        self._last_error = self._trouble or self._last_error
        self.report_change()

    def report_change(self) -> None:
        now = self.current_health()
        if now.state != self._state:
            self._state = now.state
            self._on_change(now)

    def current_health(self) -> ProviderHealth:
        breaker, waiting = self.breaker, self.breaker.state == "open"
        return ProviderHealth(
            provider=self.provider.name,
            state=self._current_state(),
            errors=breaker.errors,
            last_error=self._last_error,
            next_try_seconds=round(breaker.wait_seconds, 1) if waiting else None,
        )

    def _current_state(self) -> HealthState:
        state = self.breaker.state
        if state != "closed":
            return state
        return "degraded" if self.breaker.errors or self._trouble is not None else "ok"


class ProviderHealthMonitor:
    """A circuit breaker and a record per provider, made at its first call."""

    def __init__(
        self,
        errors: int,
        cooldown: float,
        told: Callable[[ProviderHealth], None] = lambda _now: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._errors, self._cooldown, self._on_change, self._clock = errors, cooldown, told, clock
        self._records: dict[str, _ProviderRecord] = {}

    def refusal(self, provider: ModelProvider) -> ProviderDown | None:
        """Returns why the provider is not called now, or None."""
        breaker = self._record_for(provider).breaker
        if breaker.admits:
            return None
        when = "one call is trying it" if breaker.state == "probing" else f"next try in {breaker.wait_seconds:.0f} s"
        last = self._record_for(provider).current_health().last_error or "It failed again and again."
        return ProviderDown(f"{last} It is left alone for now ({when}).")

    def wait_seconds(self, provider: ModelProvider) -> float:
        """Seconds until the provider may be called; 0 if it may now, or one call is trying."""
        return self._record_for(provider).breaker.wait_seconds

    def enter(self, provider: ModelProvider) -> CallGuard | None:
        """Returns permission to call the provider, or None."""
        record = self._record_for(provider)
        passed = record.breaker.enter()
        if passed is None:
            return None
        record.report_change()
        return CallGuard(passed, record)

    def report(self) -> list[ProviderHealth]:
        """Lists the health of every provider called so far, by name."""
        return [self._records[name].current_health() for name in sorted(self._records)]

    def _record_for(self, provider: ModelProvider) -> _ProviderRecord:
        if provider.name not in self._records:
            breaker = CircuitBreaker(self._errors, self._cooldown, self._clock)
            self._records[provider.name] = _ProviderRecord(provider, breaker, self._on_change)
        return self._records[provider.name]


# A bad request stays bad elsewhere, and the caller retries an answer that made no sense.
_ANOTHER_MAY_ANSWER: Final = (ProviderDown, ProviderRateLimited, KeyRefused)
_REMEMBERED: Final = 100


@dataclass(frozen=True, slots=True)
class FallbackCandidates:
    """Models to try in order; `trouble` is why the preferred one is missing, if it is."""

    selections: tuple[ModelSelection, ...]
    trouble: ProviderDown | None = None


@dataclass(frozen=True, slots=True)
class _FailedCandidate:
    choice: ModelChoice | None
    label: str
    error: ProviderTrouble


class InterruptedAnswers:
    """Providers that broke off an answer, by message. The next try avoids them: streamed text cannot be taken back."""

    def __init__(self) -> None:
        self._by_message: dict[str, tuple[str, ProviderTrouble]] = {}

    def note(self, message_id: str | None, selection: ModelSelection, error: ProviderTrouble) -> None:
        if message_id is not None:
            self._by_message[message_id] = (selection.endpoint.provider.name, error)
            while len(self._by_message) > _REMEMBERED:
                del self._by_message[next(iter(self._by_message))]

    def pop(self, message_id: str | None) -> tuple[str, ProviderTrouble] | None:
        return None if message_id is None else self._by_message.pop(message_id, None)


class FallbackChain:
    """Asks models one after the other; each call has its own id and ledger row."""

    def __init__(self, caller: ModelCaller, health: ProviderHealthMonitor, broken_off: InterruptedAnswers) -> None:
        self._caller, self._health, self._interrupted = caller, health, broken_off
        self._failed: list[_FailedCandidate] = []
        self._announced = 0

    async def ask(self, request: ModelRequest, candidates: FallbackCandidates) -> AsyncGenerator[ModelEvent]:
        if candidates.trouble is not None:
            self._failed.append(_FailedCandidate(None, "", candidates.trouble))
        avoided = self._interrupted.pop(request.message_id) if len(candidates.selections) > 1 else None
        for number, selection in enumerate(candidates.selections):
            error = avoided[1] if avoided and avoided[0] == selection.endpoint.provider.name else None
            guard = await self._admit(selection) if error is None else error
            if not isinstance(guard, CallGuard):
                self._note_failure(selection, guard)
                continue
            call = replace(request, call_id=f"{request.call_id}.f{number}") if number else request
            last = number == len(candidates.selections) - 1
            spoke = False
            try:
                async with aclosing(self._guarded_call(call, selection, guard)) as events:
                    async for event in events:
                        spoke = spoke or not isinstance(event, FallbackUsed)
                        yield event
                return
            except _ANOTHER_MAY_ANSWER as error:
                if spoke and not last:
                    self._interrupted.note(request.message_id, selection, error)
                if spoke:
                    error.next_try = self._next_try(candidates)
                    raise
                self._note_failure(selection, error)
        verdict = self._final_error()
        verdict.next_try = self._next_try(candidates)
        raise verdict

    async def _admit(self, selection: ModelSelection) -> CallGuard | ProviderDown:
        """Waits for the spacing between calls and returns permission to call, or why there is none."""
        provider = selection.endpoint.provider
        refusal = self._health.refusal(provider)
        if refusal is not None:
            return refusal
        await self._caller.wait_to_start(selection)
        guard = self._health.enter(provider)
        if guard is None:
            return self._health.refusal(provider) or ProviderDown(f"{provider.label} is left alone for now.")
        return guard

    async def _guarded_call(
        self, request: ModelRequest, selection: ModelSelection, guard: CallGuard
    ) -> AsyncGenerator[CallEvent | FallbackUsed]:
        try:
            if len(self._failed) > self._announced:
                first = self._failed[self._announced]
                self._announced = len(self._failed)
                yield FallbackUsed(first.choice, selection.choice, first.error.message)
            async with aclosing(self._caller.call(request, selection)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        guard.succeeded()
                    yield event
        except ProviderTrouble as error:
            guard.failed(error)
            raise
        finally:
            guard.abandoned()

    def _next_try(self, candidates: FallbackCandidates) -> float | None:
        """Seconds until the first candidate may be called again, if none may now."""
        return min(self._health.wait_seconds(one.endpoint.provider) for one in candidates.selections) or None

    def _note_failure(self, selection: ModelSelection, error: ProviderTrouble) -> None:
        self._failed.append(_FailedCandidate(selection.choice, selection.endpoint.provider.label, error))

    def _final_error(self) -> ProviderTrouble:
        """Returns an error that may go away, if there is one: it decides whether to try again."""
        worth = [failed.error for failed in self._failed if failed.error.retry != "none"]
        error = (worth or [failed.error for failed in self._failed])[0]
        if len(self._failed) == 1:
            return error
        others = ", ".join(dict.fromkeys(f.label for f in self._failed if f.error is not error and f.label))
        return type(error)(f"{error.message} No other one answered either ({others}).", hint=error.hint)
