"""When skills are due: cron, intervals and single moments, in time zones that change their clocks."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from annabelle.core.errors import InvalidArguments
from annabelle.skills.schedule import (
    CronSchedule,
    DayStepSchedule,
    IntervalSchedule,
    OneMoment,
    find_time_zone,
    parse_cron,
    read_schedule,
)

BERLIN = ZoneInfo("Europe/Berlin")
pytestmark = pytest.mark.req("SKL-01")


def dues(expression: str, begin: str, count: int, zone: ZoneInfo = BERLIN) -> list[str]:
    schedule, found = parse_cron(expression, zone), list[str]()
    moment: datetime | None = datetime.fromisoformat(begin).replace(tzinfo=zone).astimezone(UTC)
    for _ in range(count):
        assert moment is not None
        moment = schedule.next_after(moment)
        assert moment is not None
        found.append(moment.astimezone(zone).isoformat(timespec="minutes"))
    return found


def test_a_time_that_does_not_exist_is_due_when_the_clock_has_moved_on() -> None:
    assert dues("30 2 * * *", "2027-03-27 12:00", 2) == ["2027-03-28T03:30+02:00", "2027-03-29T02:30+02:00"]


def test_a_time_that_comes_twice_is_due_once() -> None:
    assert dues("30 2 * * *", "2027-10-30 12:00", 2) == ["2027-10-31T02:30+02:00", "2027-11-01T02:30+01:00"]


@pytest.mark.parametrize(
    ("zone", "hour", "begin", "due"),
    [
        ("America/New_York", "30 2", "2027-03-13 12:00", "2027-03-14T03:30-04:00"),  # does not exist
        ("America/New_York", "30 1", "2027-11-06 12:00", "2027-11-07T01:30-04:00"),  # comes twice
        ("Australia/Lord_Howe", "15 2", "2027-10-02 12:00", "2027-10-03T02:45+11:00"),  # half an hour is left out
        ("Australia/Lord_Howe", "45 1", "2027-04-03 12:00", "2027-04-04T01:45+11:00"),  # half an hour comes twice
        ("America/Santiago", "30 0", "2027-09-04 12:00", "2027-09-05T01:30-03:00"),  # at midnight
        ("Africa/Cairo", "30 0", "2027-04-29 12:00", "2027-04-30T01:30+03:00"),
        ("Europe/London", "30 1", "2027-10-30 12:00", "2027-10-31T01:30+01:00"),
    ],
)
def test_in_every_zone_the_hour_that_is_left_out_or_comes_twice_is_due_once(
    zone: str, hour: str, begin: str, due: str
) -> None:
    first, second = dues(f"{hour} * * *", begin, 2, ZoneInfo(zone))
    assert first == due
    assert datetime.fromisoformat(second).date() == datetime.fromisoformat(first).date() + timedelta(days=1)


def test_every_half_hour_is_due_in_each_hour_that_passes() -> None:
    assert dues("*/30 * * * *", "2027-10-31 01:40", 5) == [
        "2027-10-31T02:00+02:00",
        "2027-10-31T02:30+02:00",
        "2027-10-31T02:00+01:00",
        "2027-10-31T02:30+01:00",
        "2027-10-31T03:00+01:00",
    ]
    assert dues("*/30 * * * *", "2027-03-28 01:20", 2) == ["2027-03-28T01:30+01:00", "2027-03-28T03:00+02:00"]


def test_the_same_hour_of_the_clock_in_summer_and_in_winter() -> None:
    assert dues("0 6 * * 1-5", "2027-03-26 07:00", 1) == ["2027-03-29T06:00+02:00"]
    assert dues("0 18 * * 0", "2026-11-17 00:00", 1) == ["2026-11-22T18:00+01:00"]


@pytest.mark.parametrize(
    "expression",
    ["", "nonsense", "61 * * * *", "* * * *", "* * * * * *", "0 0 30 2 *", "@daily", "0 25 * * *", "0 0 31 4,6 *",
     "*/0 * * * *", "*/-5 * * * *", "1.5 * * * *", "0 0 0 * *", "0 0 * 13 *", "0 0 * * 8", "1,,2 * * * *", "? * * * *",
     "R R * * *", "0 r(1-5) * * *", "H/5 * * * *", "٣ * * * *", "* * * * *; ls"],
)  # fmt: skip
def test_nonsense_is_refused_in_a_sentence(expression: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        parse_cron(expression, BERLIN)
    assert refused.value.message.endswith(".")


@pytest.mark.parametrize("name", ["Europe/Nowhere", "", "../../etc/passwd", "CEST+1"])
def test_a_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(InvalidArguments, match="time zone"):
        find_time_zone(name)


def test_an_interval_goes_on_from_its_first_moment_whatever_was_missed() -> None:
    begin = datetime(2026, 11, 17, 14, 30, tzinfo=UTC)
    every = IntervalSchedule(45, begin)
    assert every.next_after(begin) == begin + timedelta(minutes=45)
    assert every.next_after(begin - timedelta(days=3)) == begin + timedelta(minutes=45)
    assert every.next_after(begin + timedelta(minutes=100)) == begin + timedelta(minutes=135)


@pytest.mark.parametrize(
    ("clock", "first_day", "expected"),
    [
        (time(9), date(2027, 3, 25), ["2027-03-27T09:00+01:00", "2027-03-29T09:00+02:00"]),  # clocks put forward
        (time(9), date(2027, 10, 28), ["2027-10-30T09:00+02:00", "2027-11-01T09:00+01:00"]),  # and back
        (time(2, 30), date(2027, 3, 26), ["2027-03-28T03:30+02:00", "2027-03-30T02:30+02:00"]),  # a time that is not
    ],
)
def test_every_second_day_is_at_the_same_hour_when_clocks_change(
    clock: time, first_day: date, expected: list[str]
) -> None:
    schedule = DayStepSchedule(2, clock, first_day, BERLIN)
    begin = datetime.combine(first_day, time(12), BERLIN)
    first = schedule.next_after(begin)
    assert first is not None
    assert [
        one and one.astimezone(BERLIN).isoformat(timespec="minutes") for one in (first, schedule.next_after(first))
    ] == expected
    assert schedule.next_after(begin - timedelta(days=30)) == datetime.combine(first_day, clock, BERLIN)
    assert read_schedule(schedule.trigger) == schedule


def test_a_moment_is_due_once() -> None:
    at = datetime(2026, 12, 1, 9, tzinfo=UTC)
    assert OneMoment(at).next_after(at - timedelta(seconds=1)) == at
    assert OneMoment(at).next_after(at) is None


@given(
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    minute=st.integers(0, 59),
    hour=st.one_of(st.just("*"), st.integers(0, 23).map(str)),
    weekday=st.sampled_from(["*", "0", "1-5", "3,6"]),
    begin=st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
)
def test_whatever_is_scheduled_comes_later_each_time_and_is_read_back_as_it_was(
    zone: str, minute: int, hour: str, weekday: str, begin: datetime
) -> None:
    schedule = CronSchedule(f"{minute} {hour} * * {weekday}", ZoneInfo(zone))
    first = schedule.next_after(begin)
    assert first is not None
    second = schedule.next_after(first)
    assert second is not None
    assert begin < first < second
    assert schedule.next_after(first - timedelta(seconds=1)) == first, "nothing lies between"
    assert read_schedule(schedule.trigger) == schedule
