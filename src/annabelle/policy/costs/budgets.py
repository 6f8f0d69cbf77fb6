"""The budgets of a day and a month, and what a person is told about them (TRU-01, CST-05)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from annabelle.core.settings import Settings
from annabelle.store.spending import NANO, Caps, OverBudget, Spent, nano


def caps_of(settings: Settings) -> Caps:
    """The budgets in force."""
    day, month = settings.budget_day_usd, settings.budget_month_usd
    return Caps(
        None if day is None else nano(day), None if month is None else nano(month), settings.budget_warning_share
    )


def setting_of(period: str) -> str:
    """The setting that holds the budget of a day or month."""
    return "BUDGET_MONTH_USD" if _is_month(period) else "BUDGET_DAY_USD"


def resets_at(period: str) -> datetime:
    """When the next day or month begins, in UTC."""
    if not _is_month(period):
        return datetime.fromisoformat(period).replace(tzinfo=UTC) + timedelta(days=1)
    first = datetime.fromisoformat(f"{period}-01").replace(tzinfo=UTC)
    return (first + timedelta(days=31)).replace(day=1)


def refusal(over: OverBudget) -> tuple[str, str]:
    """Why a call was not made, and what to do about it."""
    spent, period = over.spent, over.spent.period
    held = f" and {dollars(spent.reserved)} is held back for calls that run" if spent.reserved else ""
    message = (
        f"The budget of {_name(period)} does not allow another model call: {dollars(spent.settled)} of"
        f" {dollars(over.cap)} is spent{held}, and this call may cost up to {dollars(over.asked)}."
        f" The next {_kind(period)} begins at {resets_at(period):%Y-%m-%d %H:%M} UTC."
    )
    option = "month" if _is_month(period) else "day"
    return message, f"Raise {setting_of(period)}: annabelle costs budget --{option} USD, then annabelle restart."


def warning(spent: Spent, cap: int) -> str:
    """What is said once a budget is nearly used up."""
    share = f"{spent.settled / cap:.0%}" if cap else "all"
    period = spent.period
    return (
        f"Model calls have used {share} of the budget of {_name(period)}: {dollars(spent.settled)} of {dollars(cap)}."
        f" Once it is used up, no paid model is asked until {resets_at(period):%Y-%m-%d %H:%M} UTC,"
        f" unless {setting_of(period)} is raised."
    )


def dollars(amount: int) -> str:
    """An amount for a person: cents, and as many digits more as a small one needs."""
    usd = amount / NANO
    if usd == 0 or usd >= 0.1:
        return f"${usd:,.2f}"
    return f"${usd:.4f}" if usd >= 0.0001 else "less than $0.0001"


def _is_month(period: str) -> bool:
    return len(period) == len("2026-07")


def _kind(period: str) -> str:
    return "month" if _is_month(period) else "day"


def _name(period: str) -> str:
    return f"the {_kind(period)} {period}"
