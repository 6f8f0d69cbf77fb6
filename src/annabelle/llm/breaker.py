"""The circuit breaker: a provider that keeps failing is left alone for a while, then tried by one call (CST-06)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

BreakerState = Literal["closed", "open", "probing"]


class Pass:
    """Leave to make one call. Say how it went, once; whatever is said after that changes nothing."""

    def __init__(self, breaker: Breaker, probe: bool) -> None:
        self._breaker, self._probe, self._told = breaker, probe, False

    def succeeded(self) -> None:
        self._tell(self._breaker.note_success)

    def failed(self) -> None:
        """The network or the provider failed; refusals and limits are no failures of this kind."""
        self._tell(self._breaker.note_failure)

    def left(self) -> None:
        """It says nothing about the provider, as when the call was cancelled."""
        self._tell(self._breaker.note_nothing)

    def _tell(self, note: Callable[[bool], None]) -> None:
        if not self._told:
            self._told = True
            note(self._probe)


class Breaker:
    """Opens after so many net errors: a success takes one away and never all of them.

    An open one lets nobody through until its cool-down is over; then one call at a time, until one of them works.
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
        """How long until the next call may try; 0 when it may now, or when one is trying."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self._cooldown - self._clock())

    @property
    def admits(self) -> bool:
        """Whether a call would be let through now."""
        return self._opened_at is None or (not self._probing and self.wait_seconds == 0)

    def enter(self) -> Pass | None:
        """Leave to make a call, or None."""
        if not self.admits:
            return None
        probe = self._opened_at is not None
        self._probing = probe
        return Pass(self, probe)

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

    def note_nothing(self, probe: bool) -> None:
        if probe:
            self._probing = False
