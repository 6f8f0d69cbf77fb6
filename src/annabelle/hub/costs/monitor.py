"""Token use of every agent in the last hour (CST-01). The caller does the pausing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, cast

from pydantic import Field

from annabelle.core.contract import TokenUsage
from annabelle.core.models import CamelModel
from annabelle.hub.agents.config import CostControls
from annabelle.policy.costs import SpendingLimits, TokenWindow, measure_rate, reason_to_pause
from annabelle.store.cost_control import RecentCall


class CostWindow(CamelModel):
    """How fast an agent spends. Rates are tokens per minute."""

    enabled: bool = Field(description="Whether too much of it pauses the agent")
    current_hour_tokens: int
    current_hour_calls: int
    short_window_tokens_per_minute: float
    baseline_tokens_per_minute: float
    hard_cap: int = Field(description="Tokens within an hour that pause the agent")
    active_buckets: int = Field(description="Minutes of the last sixty in which a model was asked")


def current_minute() -> int:
    """Minutes of a clock that cannot be set, and that counts sleep where the system supports it."""
    clock = cast("int | None", getattr(time, "CLOCK_BOOTTIME", None))
    return int(time.monotonic() if clock is None else time.clock_gettime(clock)) // 60


_BACKGROUND: Final = ":background"


def background_account(agent_id: str) -> str:
    """What an agent spends on skills is counted, and paused, apart from what it spends on answers (CST-02)."""
    return f"{agent_id}{_BACKGROUND}"


def account_agent(account: str) -> str:
    return account.removesuffix(_BACKGROUND)


class CostMonitor:
    def __init__(self, controls: Callable[[str], CostControls], minute: Callable[[], int] = current_minute) -> None:
        self._controls, self._minute = controls, minute
        self._windows: defaultdict[str, TokenWindow] = defaultdict(TokenWindow)

    def restore(self, agent_id: str, calls: Sequence[RecentCall]) -> None:
        """Rebuild an agent's window from the ledger's last hour."""
        window, minute = TokenWindow(), self._minute()
        for call in calls:
            window.add(minute - call.minutes_ago, call.input_tokens, call.output_tokens)
        self._windows[agent_id] = window

    def count(self, agent_id: str, usage: TokenUsage) -> str | None:
        """Count a call. Returns the reason to pause the agent, if any."""
        window, controls, minute = self._windows[agent_id], self._controls(account_agent(agent_id)), self._minute()
        window.add(minute, usage.input_tokens, usage.output_tokens)
        if not controls.enabled:
            return None
        limits = _limits(controls)
        return reason_to_pause(measure_rate(window, minute, limits), limits)

    def forget(self, agent_id: str) -> None:
        self._windows[agent_id].clear()

    def status(self, agent_id: str) -> CostWindow:
        controls = self._controls(agent_id)
        reading = measure_rate(self._windows[agent_id], self._minute(), _limits(controls))
        return CostWindow(
            enabled=controls.enabled,
            current_hour_tokens=reading.hour_tokens,
            current_hour_calls=reading.hour_calls,
            short_window_tokens_per_minute=round(reading.short_rate, 1),
            baseline_tokens_per_minute=round(reading.baseline_rate, 1),
            hard_cap=controls.hard_cap_tokens_per_hour,
            active_buckets=reading.active_buckets,
        )


def _limits(controls: CostControls) -> SpendingLimits:
    return SpendingLimits(
        hard_cap_tokens=controls.hard_cap_tokens_per_hour,
        short_minutes=controls.short_window_minutes,
        multiplier=controls.spike_multiplier,
        minimum_baseline_tokens=controls.minimum_baseline_tokens,
        minimum_rate=controls.minimum_baseline_rate,
    )
