"""Spending limits: an agent's token rate, daily and monthly budgets, and the calls one message can cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from annabelle.core.backoff import BACKOFF_RETRIES, IMMEDIATE_RETRIES
from annabelle.core.contract import AgentProfile
from annabelle.core.settings import Settings
from annabelle.store.cost_control import NANO, OverBudget, PeriodSpending, SpendingCaps, to_nano_usd

BUCKETS: Final = 60


@dataclass(frozen=True, slots=True)
class MinuteUsage:
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: MinuteUsage) -> MinuteUsage:
        return MinuteUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
        )


class TokenWindow:
    """Usage per minute over the last hour.

    Minutes are numbers of any clock. If the clock goes back, usage counts in the latest minute, so that nothing is
    dropped early or counted twice.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, MinuteUsage] = {}
        self._latest = 0

    def add(self, minute: int, prompt_tokens: int, completion_tokens: int, calls: int = 1) -> None:
        minute = self._advance(minute)
        used = MinuteUsage(max(0, prompt_tokens), max(0, completion_tokens), max(0, calls))
        self._buckets[minute] = self._buckets.get(minute, MinuteUsage()) + used

    def clear(self) -> None:
        self._buckets.clear()

    def total(self, minute: int) -> MinuteUsage:
        """Usage in the hour that ends with this minute."""
        self._advance(minute)
        return sum(self._buckets.values(), MinuteUsage())

    def short(self, minute: int, minutes: int) -> MinuteUsage:
        """Usage in the last few minutes, including this one."""
        first = self._advance(minute) - minutes
        return sum((bucket for at, bucket in self._buckets.items() if at > first), MinuteUsage())

    def baseline(self, minute: int, minutes: int) -> list[MinuteUsage]:
        """The minutes before the last few that have any calls."""
        first = self._advance(minute) - minutes
        return [bucket for at, bucket in self._buckets.items() if at <= first and bucket.calls]

    @property
    def active(self) -> int:
        return sum(1 for bucket in self._buckets.values() if bucket.calls)

    def _advance(self, minute: int) -> int:
        if not self._buckets:
            self._latest = minute
        if minute > self._latest:
            self._latest = minute
            for old in [at for at in self._buckets if at <= minute - BUCKETS]:
                del self._buckets[old]
        return self._latest


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """When an agent is paused. `minimum_rate` prevents false spikes for agents that usually spend little."""

    hard_cap_tokens: int = 250_000
    short_minutes: int = 2
    multiplier: float = 3.0
    minimum_baseline_tokens: int = 1000
    minimum_rate: int = 10_000


@dataclass(frozen=True, slots=True)
class SpendingRate:
    hour_tokens: int
    hour_calls: int
    short_rate: float
    baseline_rate: float
    baseline_tokens: int
    active_buckets: int


def measure_rate(window: TokenWindow, minute: int, limits: SpendingLimits) -> SpendingRate:
    """Measure the window. Rates are in tokens per minute."""
    hour = window.total(minute)
    baseline = window.baseline(minute, limits.short_minutes)
    tokens = sum(bucket.tokens for bucket in baseline)
    return SpendingRate(
        hour_tokens=hour.tokens,
        hour_calls=hour.calls,
        short_rate=window.short(minute, limits.short_minutes).tokens / limits.short_minutes,
        baseline_rate=tokens / len(baseline) if baseline else 0.0,
        baseline_tokens=tokens,
        active_buckets=window.active,
    )


def reason_to_pause(reading: SpendingRate, limits: SpendingLimits) -> str | None:
    """Why the agent must pause, as part of a sentence, or None (CST-02, CST-03)."""
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


def load_caps(settings: Settings) -> SpendingCaps:
    day, month = settings.budget_day_usd, settings.budget_month_usd
    return SpendingCaps(
        None if day is None else to_nano_usd(day),
        None if month is None else to_nano_usd(month),
        settings.budget_warning_share,
    )


def budget_setting(period: str) -> str:
    return "BUDGET_MONTH_USD" if _is_month(period) else "BUDGET_DAY_USD"


def resets_at(period: str) -> datetime:
    """The start of the next day or month, in UTC."""
    if not _is_month(period):
        return datetime.fromisoformat(period).replace(tzinfo=UTC) + timedelta(days=1)
    first = datetime.fromisoformat(f"{period}-01").replace(tzinfo=UTC)
    return (first + timedelta(days=31)).replace(day=1)


def explain_refusal(over: OverBudget) -> tuple[str, str]:
    """Why a call was refused, and what to do about it."""
    spent, period = over.spent, over.spent.period
    held = f" and {format_dollars(spent.reserved)} is held back for calls that run" if spent.reserved else ""
    message = (
        f"The budget of {_period_name(period)} does not allow another model call: {format_dollars(spent.settled)} of"
        f" {format_dollars(over.cap)} is spent{held}, and this call may cost up to {format_dollars(over.asked)}."
        f" The next {_period_kind(period)} begins at {resets_at(period):%Y-%m-%d %H:%M} UTC."
    )
    option = "month" if _is_month(period) else "day"
    return message, f"Raise {budget_setting(period)}: annabelle costs budget --{option} USD, then annabelle restart."


def explain_warning(spent: PeriodSpending, cap: int) -> str:
    share = f"{spent.settled / cap:.0%}" if cap else "all"
    period = spent.period
    return (
        f"Model calls have used {share} of the budget of {_period_name(period)}: "
        f"{format_dollars(spent.settled)} of {format_dollars(cap)}."
        f" Once it is used up, no paid model is asked until {resets_at(period):%Y-%m-%d %H:%M} UTC,"
        f" unless {budget_setting(period)} is raised."
    )


def format_dollars(amount: int) -> str:
    """Format nano-dollars with two decimals, or four for small amounts."""
    usd = amount / NANO
    if usd == 0 or usd >= 0.1:
        return f"${usd:,.2f}"
    return f"${usd:.4f}" if usd >= 0.0001 else "less than $0.0001"


def _is_month(period: str) -> bool:
    return len(period) == len("2026-07")


def _period_kind(period: str) -> str:
    return "month" if _is_month(period) else "day"


def _period_name(period: str) -> str:
    return f"the {_period_kind(period)} {period}"


GUARD_RETRIES: Final = 1
"""Retries of an answer that claims something that was not done."""
COMPACTIONS: Final = 1
SUMMARIES_OF_THE_PAST: Final = 1


def count_tries_per_step(fallbacks: int) -> int:
    """The most tries of one step: every retry goes down the whole chain of models."""
    return (1 + IMMEDIATE_RETRIES + max(BACKOFF_RETRIES.values())) * (1 + fallbacks)


def count_worst_case_calls(profile: AgentProfile, settings: Settings) -> int:
    """The most calls one message can cause, counting every retry, thinking and summaries."""
    chain = 1 + len([name for name in settings.llm_fallbacks.split(",") if name.strip()])
    steps = profile.limits.max_steps + GUARD_RETRIES
    thinking = steps * chain if profile.thinking.enabled and profile.thinking.model else 0
    summaries = (COMPACTIONS + SUMMARIES_OF_THE_PAST) * chain
    return steps * count_tries_per_step(chain - 1) + thinking + summaries
