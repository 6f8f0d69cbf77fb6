"""What is due, what was missed, and when a failure is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from annabelle.skills.due import MOST_AT_ONCE, plan_due, retry_after
from annabelle.skills.schedule import IntervalSchedule, OneMoment

BEGIN = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOURLY = IntervalSchedule(60, BEGIN)
FIRST = BEGIN + timedelta(hours=1)
pytestmark = pytest.mark.req("SKL-08")


def test_what_is_on_time_runs_whatever_the_policy() -> None:
    for missed in ("run", "skip", "list"):
        found = plan_due(HOURLY, FIRST, FIRST + timedelta(minutes=9), missed)
        assert found.fires == ((FIRST, "due"),)
        assert found.next_due == FIRST + timedelta(hours=1)


@pytest.mark.parametrize(("missed", "last"), [("run", "due"), ("skip", "missed"), ("list", "missed")])
def test_of_a_week_that_was_missed_the_last_runs_or_none(missed: str, last: str) -> None:
    now = FIRST + timedelta(days=7, minutes=30)
    found = plan_due(HOURLY, FIRST, now, missed)  # type: ignore[arg-type]
    assert len(found.fires) == 7 * 24 + 1
    assert [state for _, state in found.fires[:-1]] == ["missed"] * 7 * 24
    assert found.fires[-1][1] == last
    assert found.next_due == FIRST + timedelta(days=7, hours=1)


def test_a_reminder_that_was_missed_is_made_up_for_and_over() -> None:
    found = plan_due(OneMoment(FIRST), FIRST, FIRST + timedelta(days=3), "run")
    assert (found.fires, found.next_due) == (((FIRST, "due"),), None)


def test_a_year_of_minutes_is_not_all_written_down() -> None:
    found = plan_due(IntervalSchedule(1, BEGIN), FIRST, FIRST + timedelta(days=365), "run")
    assert MOST_AT_ONCE <= len(found.fires) <= MOST_AT_ONCE + 11
    assert found.fires[-1] == (FIRST + timedelta(days=365), "due"), "the newest is there, and runs"
    assert found.next_due == FIRST + timedelta(days=365, minutes=1)


@given(hours=st.lists(st.integers(0, 190), min_size=1, max_size=20).map(sorted))
def test_whenever_one_looks_each_instant_is_planned_once(hours: list[int]) -> None:
    """`hours`: the moments at which a hub was alive."""
    planned, next_due = list[datetime](), FIRST
    for hour in hours:
        now = BEGIN + timedelta(hours=hour, minutes=5)
        if next_due <= now:
            found = plan_due(HOURLY, next_due, now, "run")
            planned += [at for at, _ in found.fires]
            assert found.next_due is not None
            next_due = found.next_due
    assert planned == [BEGIN + timedelta(hours=hour) for hour in range(1, hours[-1] + 1)]


@pytest.mark.req("SKL-04")
def test_failures_are_tried_again_after_1_5_15_and_60_minutes_and_the_fifth_disables() -> None:
    waits = [retry_after(failures) for failures in range(1, 6)]
    assert [wait.total_seconds() / 60 if wait else None for wait in waits] == [1, 5, 15, 60, None]
