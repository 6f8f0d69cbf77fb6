"""What people say about when."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from annabelle.core.errors import InvalidArguments
from annabelle.skills.spoken_schedule import read_when

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 17, 14, 30, tzinfo=UTC)
"""A Tuesday, half past three in Berlin."""
pytestmark = pytest.mark.req("SKL-09")


@pytest.mark.parametrize(
    ("words", "due"),
    [
        ("in 10 minutes", "2026-11-17T15:40"),
        ("in two hours", "2026-11-17T17:30"),
        ("in 1 hour and 30 minutes", "2026-11-17T17:00"),
        ("at 5pm", "2026-11-17T17:00"),
        ("at 5", "2026-11-17T17:00"),
        ("at 3pm", "2026-11-18T15:00"),
        ("tonight at 8", "2026-11-17T20:00"),
        ("tomorrow at 9", "2026-11-18T09:00"),
        ("tomorrow", "2026-11-18T09:00"),
        ("on friday at noon", "2026-11-20T12:00"),
        ("on 3 December at 10:00", "2026-12-03T10:00"),
        ("2026-12-01T10:00", "2026-12-01T10:00"),
        ("2026-12-01T10:00:00Z", "2026-12-01T11:00"),
        ("morgen um 9", "2026-11-18T09:00"),
        ("dans 20 minutes", "2026-11-17T15:50"),
        ("10 minutes", "2026-11-17T15:40"),
    ],
)
def test_a_moment_is_read(words: str, due: str) -> None:
    found = read_when(words, NOW, BERLIN).next_after(NOW)
    assert found is not None
    assert found.astimezone(BERLIN).isoformat(timespec="minutes")[:16] == due


@pytest.mark.parametrize(
    ("words", "trigger"),
    [
        ("every weekday at 8", {"schedule": "0 8 * * 1-5"}),
        ("at 18:30 every day", {"schedule": "30 18 * * *"}),
        ("every morning", {"schedule": "0 8 * * *"}),
        ("each friday at 5pm", {"schedule": "0 17 * * 5"}),
        ("every monday and thursday at 18:00", {"schedule": "0 18 * * 1,4"}),
        ("mondays at 9", {"schedule": "0 9 * * 1"}),
        ("daily at 6", {"schedule": "0 6 * * *"}),
        ("weekly", {"schedule": "0 9 * * 2"}),
        ("every month", {"schedule": "0 9 17 * *"}),
        ("on weekends at 10", {"schedule": "0 10 * * 0,6"}),
        ("every 2 hours", {"interval_minutes": 120}),
        ("every 15 minutes", {"interval_minutes": 15}),
        ("hourly", {"interval_minutes": 60}),
        ("every other day at 7am", {"interval_minutes": 2880, "begin": "2026-11-17T06:00:00+00:00"}),
    ],
)
def test_what_comes_again_and_again_is_read(words: str, trigger: dict[str, object]) -> None:
    found = read_when(words, NOW, BERLIN).trigger
    assert {name: found[name] for name in trigger} == trigger


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ("2027-03-28T00:30+00:00", "2027-03-28T02:30:00+00:00"),  # the clocks are put forward in between
        ("2027-10-31T00:30+00:00", "2027-10-31T02:30:00+00:00"),  # and back
        ("2027-10-31T01:30+00:00", "2027-10-31T03:30:00+00:00"),  # in the hour that comes twice
    ],
)
def test_a_span_is_as_long_as_it_says_whatever_clocks_show(now: str, due: str) -> None:
    at = datetime.fromisoformat(now)
    assert read_when("in 2 hours", at, BERLIN).trigger == {"at": due}


@pytest.mark.parametrize(
    "words",
    ["every month on the 15th at 9", "every 2 weeks on monday at 9", "every other monday", "every 2 months",
     "every 99999999999 days", "9999-12-31T23:59:59-12:00", "31 april", "31 November at 10", "1800000000", "1e+30"],
)  # fmt: skip
def test_what_would_be_misread_is_refused(words: str) -> None:
    with pytest.raises(InvalidArguments):
        read_when(words, NOW, BERLIN)


@pytest.mark.parametrize("words", ["now", "yesterday", "yesterday at 5pm", "blue", "", "30 February", "2020-01-01"])
def test_what_is_over_or_no_time_is_refused(words: str) -> None:
    with pytest.raises(InvalidArguments):
        read_when(words, NOW, BERLIN)
