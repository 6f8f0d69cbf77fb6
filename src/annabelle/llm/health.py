"""How each provider is doing, and whether it may be called now (LLM-06, CST-06)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from annabelle.core.errors import ProviderDown, ProviderTrouble
from annabelle.core.tools import JsonObject
from annabelle.llm.breaker import Breaker, Pass
from annabelle.llm.providers import Provider

HealthState = Literal["ok", "degraded", "open", "probing"]


@dataclass(frozen=True, slots=True)
class ProviderHealth:
    """One provider at this moment. `degraded`: it had trouble lately, and is called all the same."""

    provider: str
    state: HealthState
    errors: int
    last_error: str | None
    next_try_seconds: float | None

    def to_json(self) -> JsonObject:
        return asdict(self)


class CallGuard:
    """Around one call that was let through: says how it went."""

    def __init__(self, passed: Pass, record: _Record) -> None:
        self._pass, self._record = passed, record

    def succeeded(self) -> None:
        self._pass.succeeded()
        self._record.note(None)

    def failed(self, error: ProviderTrouble) -> None:
        """Only what is the network's or the provider's own fault counts for the breaker."""
        if isinstance(error, ProviderDown):
            self._pass.failed()
        else:
            self._pass.left()
        self._record.note(error)

    def left(self) -> None:
        """The call ended for a reason of ours; after `succeeded` or `failed` this changes nothing."""
        self._pass.left()


class _Record:
    def __init__(self, provider: Provider, breaker: Breaker, told: Callable[[ProviderHealth], None]) -> None:
        self.provider, self.breaker, self._told = provider, breaker, told
        self._trouble: str | None = None
        self._last_error: str | None = None
        self._state: HealthState = "ok"

    def note(self, error: ProviderTrouble | None) -> None:
        self._trouble = None if error is None else error.message
        self._last_error = self._trouble or self._last_error
        self.tell()

    def tell(self) -> None:
        now = self.now()
        if now.state != self._state:
            self._state = now.state
            self._told(now)

    def now(self) -> ProviderHealth:
        breaker, waiting = self.breaker, self.breaker.state == "open"
        return ProviderHealth(
            provider=self.provider.name,
            state=self._now(),
            errors=breaker.errors,
            last_error=self._last_error,
            next_try_seconds=round(breaker.wait_seconds, 1) if waiting else None,
        )

    def _now(self) -> HealthState:
        state = self.breaker.state
        if state != "closed":
            return state
        return "degraded" if self.breaker.errors or self._trouble is not None else "ok"


class Health:
    """A breaker and a record per provider, made when it is first called."""

    def __init__(
        self,
        errors: int,
        cooldown: float,
        told: Callable[[ProviderHealth], None] = lambda _now: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._errors, self._cooldown, self._told, self._clock = errors, cooldown, told, clock
        self._records: dict[str, _Record] = {}

    def refusal(self, provider: Provider) -> ProviderDown | None:
        """Why the provider is not called now, if it is not."""
        breaker = self._of(provider).breaker
        if breaker.admits:
            return None
        when = "one call is trying it" if breaker.state == "probing" else f"next try in {breaker.wait_seconds:.0f} s"
        last = self._of(provider).now().last_error or "It failed again and again."
        return ProviderDown(f"{last} It is left alone for now ({when}).")

    def wait(self, provider: Provider) -> float:
        """Seconds until the provider may be called; 0 when it may be now, or when one call is trying it."""
        return self._of(provider).breaker.wait_seconds

    def enter(self, provider: Provider) -> CallGuard | None:
        """Leave to call the provider, or None."""
        record = self._of(provider)
        passed = record.breaker.enter()
        if passed is None:
            return None
        record.tell()
        return CallGuard(passed, record)

    def report(self) -> list[ProviderHealth]:
        """Every provider that was called, by name."""
        return [self._records[name].now() for name in sorted(self._records)]

    def _of(self, provider: Provider) -> _Record:
        if provider.name not in self._records:
            breaker = Breaker(self._errors, self._cooldown, self._clock)
            self._records[provider.name] = _Record(provider, breaker, self._told)
        return self._records[provider.name]
