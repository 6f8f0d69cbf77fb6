"""What people say about when."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject
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
        ("every other day at 7am", {"every_days": 2, "clock": "07:00", "first_day": "2026-11-18"}),
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
    ["every 2 months", "every 99999999999 days", "in 99999999 hours", "9999-12-31T23:59:59-12:00",
     "31 april", "31 November at 10", "1800000000", "1e+30"],
)  # fmt: skip
def test_what_would_be_misread_is_refused(words: str) -> None:
    with pytest.raises(InvalidArguments):
        read_when(words, NOW, BERLIN)


@pytest.mark.parametrize("words", ["now", "yesterday", "yesterday at 5pm", "blue", "", "30 February", "2020-01-01"])
def test_what_is_over_or_no_time_is_refused(words: str) -> None:
    with pytest.raises(InvalidArguments):
        read_when(words, NOW, BERLIN)


AFTERNOON = datetime(2026, 11, 17, 14, 30, tzinfo=BERLIN)
PHRASES = [
    (phrase, meant)
    for name in ("recurring_phrases", "further_phrases")
    for rows in tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8")).values()
    for phrase, meant in rows.items()
]
SAID_WORDS = sorted({word for phrase, _ in PHRASES for word in phrase.split()})


def describe(trigger: JsonObject) -> str:
    if "at" in trigger:
        return f"at {datetime.fromisoformat(str(trigger['at'])).astimezone(BERLIN):%Y-%m-%d %H:%M}"
    if "interval_minutes" in trigger:
        return f"every {trigger['interval_minutes']} minutes"
    if "every_days" in trigger:
        clock = str(trigger["clock"]).removeprefix("0")
        return f"every {trigger['every_days']} days at {clock} from {trigger['first_day']}"
    return str(trigger["schedule"])


@pytest.mark.req("SKL-01")
@pytest.mark.parametrize(("phrase", "meant"), PHRASES)
def test_what_people_say_in_five_languages_is_read_as_they_mean_it_or_refused(phrase: str, meant: str) -> None:
    try:
        found = describe(read_when(phrase, AFTERNOON, BERLIN).trigger)
    except InvalidArguments:
        found = "refused"
    assert found == meant


@pytest.mark.parametrize(
    "phrase", ["every friday at 5", "tomorrow at 5", "todos los días a las 5", "jeden Tag um halb 6"]
)
def test_an_hour_of_either_half_of_the_day_is_asked_about(phrase: str) -> None:
    with pytest.raises(InvalidArguments, match="in the morning or in the afternoon") as refused:
        read_when(phrase, AFTERNOON, BERLIN)
    assert (refused.value.hint or "")[:13] in ("Say 05:00 or ", "Say 05:30 or ")


def test_the_same_words_without_accents_and_in_capitals_are_read() -> None:
    plain = read_when("W PONIEDZIALKI O WPOL DO DZIEWIATEJ", AFTERNOON, BERLIN)
    assert plain == read_when("w poniedziałki o wpół do dziewiątej", AFTERNOON, BERLIN)


@settings(deadline=None)
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(st.sampled_from(SAID_WORDS), max_size=7).map(" ".join),
        st.from_regex(r"(every|jeden|co|cada|tous les) [0-9]{1,12} ?(h|days|\.|:[0-9]{2})?", fullmatch=True),
    )
)
def test_any_words_are_refused_or_mean_a_time_to_come(text: str) -> None:
    try:
        schedule = read_when(text, AFTERNOON, BERLIN)
    except InvalidArguments:
        return
    due = schedule.next_after(AFTERNOON)
    assert due is not None
    assert due > AFTERNOON
