"""The window of an hour, the pause it leads to, and what a person is told about budgets."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from annabelle.core.contract import AgentProfile, ThinkingSettings, TurnLimits
from annabelle.core.settings import Settings
from annabelle.policy import costs
from annabelle.policy.costs import (
    BUCKETS,
    SpendingLimits,
    TokenWindow,
    count_worst_case_calls,
    measure_rate,
    reason_to_pause,
)
from annabelle.store.cost_control import OverBudget, PeriodSpending, SpendingCaps, to_nano_usd

LIMITS = SpendingLimits()


def settings(**fields: object) -> Settings:
    return Settings.model_validate(fields)


def judged(window: TokenWindow, minute: int, limits: SpendingLimits = LIMITS) -> str | None:
    return reason_to_pause(measure_rate(window, minute, limits), limits)


@pytest.mark.req("CST-01")
def test_the_window_holds_sixty_minutes_of_prompt_tokens_completion_tokens_and_calls() -> None:
    window = TokenWindow()
    for minute in range(100, 200):
        window.add(minute, 10, 5)
    total = window.total(199)
    assert (total.prompt_tokens, total.completion_tokens, total.calls) == (600, 300, 60)
    assert window.active == 60
    assert window.total(229).calls == 30
    assert window.total(300).calls == 0


@pytest.mark.req("CST-01")
@given(
    st.lists(st.tuples(st.integers(-200, 200), st.integers(0, 10_000), st.integers(0, 10_000)), max_size=200),
    st.integers(0, 10**7),
)
def test_a_clock_that_goes_back_neither_empties_nor_doubles_the_window(
    calls: list[tuple[int, int, int]], start: int
) -> None:
    window, clock = TokenWindow(), start
    believed: list[tuple[int, int]] = []
    latest = None
    for step, prompt, completion in calls:
        clock += step
        window.add(clock, prompt, completion)
        latest = clock if latest is None else max(latest, clock)
        believed.append((latest, prompt + completion))
    total = window.total(clock)
    if latest is not None:
        within = [tokens for at, tokens in believed if at > latest - BUCKETS]
        assert total.tokens == sum(within)
        assert total.calls == len(within)
    assert window.short(clock, 2).tokens + sum(one.tokens for one in window.baseline(clock, 2)) == total.tokens


@pytest.mark.req("CST-02")
def test_the_hour_ends_an_agent_exactly_at_its_cap() -> None:
    window = TokenWindow()
    for minute in range(50):
        window.add(minute, 4_000, 999)
    assert judged(window, 49) is None
    window.add(50, 50, 0)
    reason = judged(window, 50)
    assert reason is not None
    assert "250,000 tokens within an hour" in reason
    assert judged(window, 50, SpendingLimits(hard_cap_tokens=250_001)) is None
    assert judged(window, 60) is None, "the first minute is over an hour ago"


@pytest.mark.req("CST-03")
@pytest.mark.parametrize(("burst", "paused"), [(90_000, False), (90_002, True)])
def test_a_spike_over_three_times_the_usual_rate_pauses(burst: int, paused: bool) -> None:
    window, limits = TokenWindow(), SpendingLimits(hard_cap_tokens=10**9)
    for minute in (0, 7, 20):  # quiet minutes do not count into the mean
        window.add(minute, 15_000, 0)
    window.add(30, burst, 0)
    assert (judged(window, 30, limits) is not None) is paused


@pytest.mark.req("CST-03")
def test_there_is_no_spike_without_a_baseline_nor_below_the_least_rate() -> None:
    window, limits = TokenWindow(), SpendingLimits(hard_cap_tokens=10**9)
    window.add(0, 999, 0)
    window.add(10, 200_000, 0)
    assert judged(window, 10, limits) is None, "fewer than 1000 tokens are no habit"
    busy = TokenWindow()
    busy.add(0, 3_000, 0)
    busy.add(10, 50_000, 0)
    assert judged(busy, 10, limits) is None, "a working minute after small talk is no spike"
    assert judged(busy, 10, SpendingLimits(hard_cap_tokens=10**9, minimum_rate=0)) is not None


@pytest.mark.req("CST-03")
@pytest.mark.parametrize(("habit", "paused"), [(999, False), (1_000, True)])
def test_a_thousand_tokens_are_enough_of_a_habit(habit: int, paused: bool) -> None:
    window = TokenWindow()
    window.add(0, habit, 0)
    window.add(10, 200_000, 0)
    assert (judged(window, 10) is not None) is paused


@pytest.mark.req("CST-03")
def test_a_spike_is_measured_over_two_minutes_and_the_one_before_them_is_habit() -> None:
    window = TokenWindow()
    window.add(0, 15_000, 0)
    window.add(8, 15_000, 0)
    window.add(9, 45_000, 0)
    window.add(10, 45_000, 0)
    assert judged(window, 10) is None, "45,000 tokens a minute are three times 15,000 and not more"
    window.add(9, 1, 0)
    assert judged(window, 10) is not None


@pytest.mark.req("CST-04")
def test_a_window_that_is_cleared_begins_anew() -> None:
    window = TokenWindow()
    window.add(10, 300_000, 0)
    assert judged(window, 10) is not None
    window.clear()
    assert judged(window, 10) is None
    window.add(11, 10, 0)
    assert window.total(11).tokens == 10


@pytest.mark.req("TRU-01")
def test_a_refusal_names_the_budget_what_is_spent_when_it_ends_and_how_to_raise_it() -> None:
    message, hint = costs.explain_refusal(
        OverBudget(
            PeriodSpending("2026-12-31", to_nano_usd(0.9), to_nano_usd(0.05)), to_nano_usd(1.0), to_nano_usd(0.06)
        )
    )
    assert message == (
        "The budget of the day 2026-12-31 does not allow another model call: $0.90 of $1.00 is spent and $0.0500 is"
        " held back for calls that run, and this call may cost up to $0.0600."
        " The next day begins at 2027-01-01 00:00 UTC."
    )
    assert "BUDGET_DAY_USD" in hint
    month, hint = costs.explain_refusal(
        OverBudget(PeriodSpending("2026-12", to_nano_usd(10.0)), to_nano_usd(10.0), to_nano_usd(0.5))
    )
    assert "The next month begins at 2027-01-01 00:00 UTC." in month
    assert "BUDGET_MONTH_USD" in hint


@pytest.mark.req("CST-05")
def test_a_warning_says_how_much_is_left_and_until_when() -> None:
    text = costs.explain_warning(PeriodSpending("2026-02", to_nano_usd(8.5)), to_nano_usd(10.0))
    assert "85% of the budget of the month 2026-02: $8.50 of $10.00" in text
    assert "2026-03-01 00:00 UTC" in text
    assert costs.resets_at("2026-02-28") == datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.req("TRU-01")
def test_budgets_come_from_the_settings_as_whole_numbers() -> None:
    assert costs.load_caps(settings()) == SpendingCaps(None, None, 0.8)
    assert costs.load_caps(settings(budget_day_usd=0.1, budget_month_usd=0, budget_warning_share=0.5)) == SpendingCaps(
        100_000_000, 0, 0.5
    )


@pytest.mark.req("CST-10")
def test_the_worst_case_of_a_message_is_a_number_that_follows_from_the_limits() -> None:
    profile = AgentProfile(agent_id="a", limits=TurnLimits(max_steps=3), thinking=ThinkingSettings(model=""))
    tries = 1 + 2 + 5
    assert count_worst_case_calls(profile, settings()) == (3 + 1) * tries + 2
    fallbacks = settings(llm_fallbacks="groq:a, ollama:b")
    assert count_worst_case_calls(profile, fallbacks) == (3 + 1) * tries * 3 + 2 * 3
    thinking = profile.model_copy(update={"thinking": ThinkingSettings(model="small")})
    assert count_worst_case_calls(thinking, settings()) == (3 + 1) * tries + (3 + 1) + 2
