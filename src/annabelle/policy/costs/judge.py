"""Whether an agent spends so fast that it has to be paused: a cap over the hour, and a spike over its own habit."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.policy.costs.window import Window


@dataclass(frozen=True, slots=True)
class Limits:
    """When an agent is paused. `minimum_rate` keeps a quiet habit from making every busy minute a spike."""

    hard_cap_tokens: int = 250_000
    short_minutes: int = 2
    multiplier: float = 3.0
    minimum_baseline_tokens: int = 1000
    minimum_rate: int = 10_000


@dataclass(frozen=True, slots=True)
class Reading:
    """How fast an agent spends at this moment."""

    hour_tokens: int
    hour_calls: int
    short_rate: float
    baseline_rate: float
    baseline_tokens: int
    active_buckets: int


def read(window: Window, minute: int, limits: Limits) -> Reading:
    """The window in figures; rates are tokens per minute."""
    hour = window.total(minute)
    baseline = window.baseline(minute, limits.short_minutes)
    tokens = sum(bucket.tokens for bucket in baseline)
    return Reading(
        hour_tokens=hour.tokens,
        hour_calls=hour.calls,
        short_rate=window.short(minute, limits.short_minutes).tokens / limits.short_minutes,
        baseline_rate=tokens / len(baseline) if baseline else 0.0,
        baseline_tokens=tokens,
        active_buckets=window.active,
    )


def reason_to_pause(reading: Reading, limits: Limits) -> str | None:
    """Why the agent must stop, as the part of a sentence; None when it may go on (CST-02, CST-03)."""
    if reading.hour_tokens >= limits.hard_cap_tokens:
        return (
            f"it used {reading.hour_tokens:,} tokens within an hour, and {limits.hard_cap_tokens:,} are the most it may"
        )
    usual = max(reading.baseline_rate, float(limits.minimum_rate))
    if reading.baseline_tokens >= limits.minimum_baseline_tokens and reading.short_rate > limits.multiplier * usual:
        return (
            f"it used {reading.short_rate:,.0f} tokens a minute in the last {limits.short_minutes} minutes, more than"
            f" {limits.multiplier:g} times its usual {usual:,.0f}"
        )
    return None
