"""Sentences that become events."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core.errors import InvalidArguments
from annabelle.servers.mail_calendar.calendar.quick_event import read_sentence

pytestmark = pytest.mark.req("SRV-MAI")

BERLIN = ZoneInfo("Europe/Berlin")
SUNDAY = datetime(2026, 11, 15, 14, 0, tzinfo=BERLIN)
ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "UTC"]


@pytest.mark.parametrize(
    ("sentence", "summary", "start", "end", "location"),
    [
        ("Lunch with Ana tomorrow at 12:30", "Lunch with Ana", "2026-11-16T12:30", "2026-11-16T13:30", ""),
        ("Dentist 2026-12-03 9am-10am", "Dentist", "2026-12-03T09:00", "2026-12-03T10:00", ""),
        ("Team offsite from Dec 3 to Dec 5", "Team offsite", "2026-12-03", "2026-12-06", ""),
        ("Offsite Dec 3-5", "Offsite", "2026-12-03", "2026-12-06", ""),
        ("Trip Dec 28 to Jan 3", "Trip", "2026-12-28", "2027-01-04", ""),
        ("Call mum on friday 18:00 for 30 minutes", "Call mum", "2026-11-20T18:00", "2026-11-20T18:30", ""),
        ("Holiday Dec 24", "Holiday", "2026-12-24", "2026-12-25", ""),
        ("Holiday 24th of December 2027", "Holiday", "2027-12-24", "2027-12-25", ""),
        ("Review next tuesday 3pm at Cafe Luna", "Review", "2026-11-17T15:00", "2026-11-17T16:00", "Cafe Luna"),
        ("Coffee at Luna with Bob tomorrow 3-4pm", "Coffee with Bob", "2026-11-16T15:00", "2026-11-16T16:00", "Luna"),
        ("Meeting 10:00-11:30 monday at Room 4", "Meeting", "2026-11-16T10:00", "2026-11-16T11:30", "Room 4"),
        ("Buy 2 tickets in 3 hours", "Buy 2 tickets", "2026-11-15T17:00", "2026-11-15T18:00", ""),
        ("Pay rent in 2 weeks", "Pay rent", "2026-11-29", "2026-11-30", ""),
        ("Party Dec 31 10pm-2am", "Party", "2026-12-31T22:00", "2027-01-01T02:00", ""),
        ("Party Dec 31 22:00-2:00", "Party", "2026-12-31T22:00", "2027-01-01T02:00", ""),
        ("Shift Dec 31 10:00-06:00", "Shift", "2026-12-31T10:00", "2027-01-01T06:00", ""),
        ("Work from 9 to 5 tomorrow", "Work", "2026-11-16T09:00", "2026-11-16T17:00", ""),
        ("Workshop from 9 to 17:00 on Dec 2", "Workshop", "2026-12-02T09:00", "2026-12-02T17:00", ""),
        ("Conference for 3 days Dec 1", "Conference", "2026-12-01", "2026-12-04", ""),
        ("Gym at 5", "Gym", "2026-11-15T17:00", "2026-11-15T18:00", ""),
        ("Nap for half an hour at noon tomorrow", "Nap", "2026-11-16T12:00", "2026-11-16T12:30", ""),
        ("Sync thurs 3pm", "Sync", "2026-11-19T15:00", "2026-11-19T16:00", ""),
        ("Trip fri to mon", "Trip", "2026-11-20", "2026-11-24", ""),
        ("Call for an hour and a half friday 2pm", "Call", "2026-11-20T14:00", "2026-11-20T15:30", ""),
        # What is over is meant for the next time.
        ("Dinner at 13:00", "Dinner", "2026-11-16T13:00", "2026-11-16T14:00", ""),
        ("Meeting sunday 15:00", "Meeting", "2026-11-15T15:00", "2026-11-15T16:00", ""),
        ("Meeting sunday 13:00", "Meeting", "2026-11-22T13:00", "2026-11-22T14:00", ""),
        ("Meeting sunday", "Meeting", "2026-11-22", "2026-11-23", ""),
        ("Trip sunday to tuesday", "Trip", "2026-11-22", "2026-11-25", ""),
        ("Birthday Nov 14", "Birthday", "2027-11-14", "2027-11-15", ""),
        ("Leap day Feb 29", "Leap day", "2028-02-29", "2028-03-01", ""),
        # Words and figures that are no times.
        ("Look at report tomorrow", "Look at report", "2026-11-16", "2026-11-17", ""),
        ("Pay 12.50 euros tomorrow", "Pay 12.50 euros", "2026-11-16", "2026-11-17", ""),
        ("Review v2.10 tomorrow 11am", "Review v2.10", "2026-11-16T11:00", "2026-11-16T12:00", ""),
        ("1:1 with Kim thu 2pm", "1:1 with Kim", "2026-11-19T14:00", "2026-11-19T15:00", ""),
        ("Buy now that music tomorrow", "Buy now that music", "2026-11-16", "2026-11-17", ""),
        ("Sunday roast tomorrow", "Sunday roast", "2026-11-16", "2026-11-17", ""),
        ("Dec 31 20 people", "20 people", "2026-12-31", "2027-01-01", ""),
        ("Call Mar at 5pm", "Call Mar", "2026-11-15T17:00", "2026-11-15T18:00", ""),
        # Other languages.
        ("Mittagessen morgen um 12:30", "Mittagessen", "2026-11-16T12:30", "2026-11-16T13:30", ""),
        ("Read chapter 3 on 12/03/2026 at 5pm", "Read chapter 3", "2026-12-03T17:00", "2026-12-03T18:00", ""),
        ("Zahnarzt 3.12.2026 um 9 Uhr", "Zahnarzt", "2026-12-03T09:00", "2026-12-03T10:00", ""),
        ("Reunión el viernes a las 18:00", "Reunión", "2026-11-20T18:00", "2026-11-20T19:00", ""),
        ("Déjeuner demain à 12h30", "Déjeuner", "2026-11-16T12:30", "2026-11-16T13:30", ""),
        ("Встреча завтра в 15:00", "Встреча", "2026-11-16T15:00", "2026-11-16T16:00", ""),
    ],
)
def test_a_sentence_is_read(sentence: str, summary: str, start: str, end: str, location: str) -> None:
    read = read_sentence(sentence, SUNDAY)
    edges = [edge.isoformat()[:16] for edge in (read.span.start, read.span.end)]
    assert (read.summary, *edges, read.location) == (summary, start, end, location)


@pytest.mark.parametrize(
    ("sentence", "rule", "start"),
    [
        ("Standup every weekday at 9:15", "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "2026-11-16T09:15"),
        ("Choir every wednesday 19:00", "RRULE:FREQ=WEEKLY;BYDAY=WE", "2026-11-18T19:00"),
        ("Pills daily at 8am", "RRULE:FREQ=DAILY", "2026-11-16T08:00"),
        ("Birthday of Tom every year on Dec 9", "RRULE:FREQ=YEARLY", "2026-12-09"),
    ],
)
def test_a_sentence_can_repeat(sentence: str, rule: str, start: str) -> None:
    read = read_sentence(sentence, SUNDAY)
    assert (read.recurrence, read.span.start.isoformat()[:16]) == ((rule,), start)


@pytest.mark.parametrize(
    "sentence", ["Lunch with Ana", "Meet May", "2-3 people", "Buy 3 apples", "A minute with Bob", "!!!", "at"]
)
def test_a_sentence_without_a_time_is_given_back_with_an_example(sentence: str) -> None:
    with pytest.raises(InvalidArguments, match="when") as refused:
        read_sentence(sentence, SUNDAY)
    assert "tomorrow at 12:30" in (refused.value.hint or "")


def test_the_sentences_in_the_docs_are_read() -> None:
    page = Path(__file__).parents[4] / "docs" / "mail.md"
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", page.read_text().partition("said on Sunday")[2], re.MULTILINE)
    assert len(rows) >= 7
    for sentence, event in rows:
        read = read_sentence(sentence, SUNDAY)
        assert read.span.all_day == event.startswith("all day"), sentence


def test_a_sentence_without_a_title_is_given_back() -> None:
    with pytest.raises(InvalidArguments, match="what"):
        read_sentence("tomorrow at 12:30", SUNDAY)


@pytest.mark.parametrize(
    ("sentence", "start", "end"),
    [
        ("Flight 2027-03-28 at 02:30", "2027-03-28T03:30:00+02:00", "2027-03-28T04:30:00+02:00"),
        ("Feed cat 2026-10-25 at 01:30 for 2 hours", "2026-10-25T01:30:00+02:00", "2026-10-25T02:30:00+01:00"),
    ],
)
def test_clocks_that_change_are_minded(sentence: str, start: str, end: str) -> None:
    span = read_sentence(sentence, SUNDAY).span
    assert (span.start.isoformat(), span.end.isoformat()) == (start, end)


NOWS = st.builds(
    lambda moment, zone: moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)),
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)),
    st.sampled_from(ZONES),
)


@settings(deadline=None, max_examples=40)
@given(NOWS, st.integers(0, 23), st.integers(0, 59), st.integers(1, 600))
def test_a_time_today_or_tomorrow_is_never_over_and_as_long_as_said(
    now: datetime, hour: int, minute: int, length: int
) -> None:
    span = read_sentence(f"Talk at {hour:02}:{minute:02} for {length} minutes", now).span
    assert isinstance(span.start, datetime)
    assert isinstance(span.end, datetime)
    start, end = span.start.astimezone(UTC), span.end.astimezone(UTC)
    assert now.astimezone(UTC) - timedelta(hours=1) <= start <= now.astimezone(UTC) + timedelta(hours=26)
    assert end - start == timedelta(minutes=length)


@settings(deadline=None)
@given(NOWS, st.sampled_from(["mon", "tuesday", "wed", "thursday", "fri", "saturday", "sun"]))
def test_a_weekday_is_within_the_next_seven_days(now: datetime, weekday: str) -> None:
    span = read_sentence(f"Talk on {weekday}", now).span
    assert 0 < (span.start - now.date()).days <= 7  # type: ignore[operator]
    assert f"{span.start:%A}".lower().startswith(weekday)


WORDS = st.sampled_from(
    [
        *(
            "tomorrow",
            "friday",
            "next",
            "at",
            "from",
            "to",
            "12:30",
            "9am",
            "-",
            "3",
            "5",
            "Dec",
            "for",
            "30",
            "minutes",
        ),
        *("hours", "in", "noon", "every", "week", "@", "Luna", "31", "2026-02-30", "Feb", "29", "2027", "99", "24:99"),
        *("13pm", ".", ",", "0am", "midnight", "today", "until", "99999", "days"),
    ]
)


@settings(deadline=None, max_examples=40)  # what no word of English tells is looked for in many languages
@given(st.lists(WORDS, min_size=1, max_size=9).map(" ".join), NOWS)
def test_any_words_are_an_event_or_a_clear_refusal(sentence: str, now: datetime) -> None:
    try:
        read = read_sentence(sentence, now)
    except InvalidArguments:
        return
    assert read.summary
    if isinstance(read.span.start, datetime) and isinstance(read.span.end, datetime):
        assert read.span.end.astimezone(UTC) > read.span.start.astimezone(UTC)
    else:
        assert read.span.end > read.span.start
