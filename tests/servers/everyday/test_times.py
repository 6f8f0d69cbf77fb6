"""Times, zones and dates, also where clocks are put forward and back."""

from __future__ import annotations

import contextlib
from datetime import date, timedelta

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core.errors import ConfigMistake, InvalidArguments
from annabelle.servers.everyday.time_tools import add_months, add_weekdays, measure_span, weekdays_between
from annabelle.servers.everyday.zones import Zones
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")


async def test_the_time_is_the_users_own_unless_another_is_asked_for(ask: CallTool) -> None:
    own = (await ask("get_time")).times
    assert [(time.zone, time.time.isoformat()) for time in own] == [("Europe/Berlin", "2026-11-15T11:00:00+01:00")]
    others = (await ask("get_time", zones=["Tokyo", "NYC", "UTC+5:30", "India"])).times
    assert [time.time.isoformat()[11:] for time in others] == [
        "19:00:00+09:00",
        "05:00:00-05:00",
        "15:30:00+05:30",
        "15:30:00+05:30",
    ]
    assert "Sunday 2026-11-15 19:00 (JST, UTC+09:00)" in (await ask("get_time", zones=["Tokyo"])).to_text()


async def test_a_time_is_converted_between_zones(ask: CallTool) -> None:
    result = await ask("convert_time", time="2026-07-01 15:00", from_zone="Berlin", to_zones=["PST", "Tokyo"])
    assert [time.time.isoformat() for time in result.times] == [
        "2026-07-01T15:00:00+02:00",
        "2026-07-01T06:00:00-07:00",
        "2026-07-01T22:00:00+09:00",
    ]
    assert "PST is read as the local time of America/Los_Angeles" in result.times[1].note
    assert result.times[1].daylight_saving


@pytest.mark.parametrize(
    ("time", "taken", "said"),
    [
        ("2026-03-29 02:30", "2026-03-29T03:30:00+02:00", "does not exist in Europe/Berlin"),
        ("2026-10-25 02:30", "2026-10-25T02:30:00+02:00", "comes twice in Europe/Berlin"),
    ],
)
async def test_an_hour_that_is_skipped_or_comes_twice_is_pointed_out(
    ask: CallTool, time: str, taken: str, said: str
) -> None:
    result = await ask("convert_time", time=time, to_zones=["UTC"])
    assert result.times[0].time.isoformat() == taken
    assert said in result.note


async def test_an_ambiguous_abbreviation_says_what_else_it_means(ask: CallTool) -> None:
    assert "Israel" in (await ask("get_time", zones=["IST"])).times[0].note


async def test_an_unknown_zone_names_near_ones(ask: CallTool) -> None:
    with pytest.raises(InvalidArguments, match="no time zone 'Berln'") as caught:
        await ask("get_time", zones=["Berln"])
    assert "Europe/Berlin" in str(caught.value.hint)
    with pytest.raises(InvalidArguments, match="several time zones") as caught:
        await ask("get_time", zones=["Brazil"])
    assert "America/Sao_Paulo" in str(caught.value.hint)


def test_a_wrong_zone_in_the_settings_is_named_as_such() -> None:
    with pytest.raises(ConfigMistake, match="user's time zone, 'Mars/Base', is none") as caught:
        Zones("Mars/Base").find(None)
    assert "USER_TIMEZONE" in str(caught.value.hint)


async def test_zones_are_found_by_city_country_and_abbreviation(ask: CallTool) -> None:
    async def names(query: str) -> list[str]:
        return [zone.name for zone in (await ask("list_time_zones", query=query)).zones]

    assert await names("poland") == ["Europe/Warsaw"]
    assert await names("san francisco") == ["America/Los_Angeles"]
    assert (await names("JST"))[0] == "Asia/Tokyo"
    first = await ask("list_time_zones")
    second = await ask("list_time_zones", page_token=first.next_page)
    assert len(first.zones) == 50
    assert not {zone.name for zone in first.zones} & {zone.name for zone in second.zones}


async def test_the_days_between_two_dates_are_told_in_every_way(ask: CallTool) -> None:
    result = await ask("date_difference", start="2026-11-15", end="2027-01-20")
    assert (result.days, result.weeks_and_days, result.calendar) == (66, "9 weeks and 3 days", "2 months, 5 days")
    assert result.business_days == 47
    assert result.hours is None
    back = await ask("date_difference", start="2027-01-20", end="2026-11-15")
    assert (back.days, back.business_days) == (-66, -47)


async def test_the_hours_of_a_night_with_a_change_of_clocks_are_the_real_ones(ask: CallTool) -> None:
    result = await ask("date_difference", start="2026-03-28 12:00", end="2026-03-29 12:00")
    assert (result.days, result.hours) == (1, 23.0)


async def test_a_month_later_than_the_last_day_is_the_last_day(ask: CallTool) -> None:
    result = await ask("add_to_date", date="2027-01-31", months=1)
    assert (result.date, result.time) == ("2027-02-28", None)
    assert "no day 31" in result.note
    assert (await ask("add_to_date", date="2028-02-29", years=1)).date == "2029-02-28"


async def test_working_days_leap_over_weekends(ask: CallTool) -> None:
    assert (await ask("add_to_date", date="2026-11-13", business_days=1)).date == "2026-11-16"
    assert (await ask("add_to_date", date="2026-11-16", business_days=-1)).date == "2026-11-13"
    assert (await ask("add_to_date", date="2026-11-14", business_days=10)).date == "2026-11-27"


async def test_hours_pass_for_real_and_days_on_the_wall(ask: CallTool) -> None:
    by_hours = await ask("add_to_date", date="2026-03-28 12:00", hours=24)
    by_days = await ask("add_to_date", date="2026-03-28 12:00", days=1)
    assert (by_hours.time, by_days.time) == ("2026-03-29T13:00+02:00", "2026-03-29T12:00+02:00")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("next friday 3pm", ("2026-11-20", "2026-11-20T15:00+01:00")),
        ("tomorrow", ("2026-11-16", None)),
        ("in 3 weeks", ("2026-12-06", None)),
        ("in 90 minutes", ("2026-11-15", "2026-11-15T12:30+01:00")),
        ("24 December", ("2026-12-24", None)),
        ("15 March", ("2027-03-15", None)),
        ("tomorrow at noon", ("2026-11-16", "2026-11-16T12:00+01:00")),
    ],
)
async def test_words_become_dates(ask: CallTool, words: str, found: tuple[str, str | None]) -> None:
    result = await ask("find_date", text=words)
    assert (result.date, result.time) == found


async def test_what_could_be_read_in_two_ways_is_said(ask: CallTool) -> None:
    assert "month/day" in (await ask("find_date", text="03/04/2027")).note
    assert "a week later" in (await ask("find_date", text="next friday")).note


@pytest.mark.parametrize(
    "text", ["blurb", "\x00", "last day of never", "9" * 200, "0001-01-01", "９９９９-12-31", "(" * 100]
)
async def test_what_is_no_date_is_one_clear_sentence(ask: CallTool, text: str) -> None:
    with pytest.raises(InvalidArguments):
        await ask("find_date", text=text)


async def test_sums_beyond_the_calendar_are_refused(ask: CallTool) -> None:
    for added in ({"years": 9999}, {"days": 10_000_000}, {"months": -120_000}, {"hours": -10_000_000, "years": -2000}):
        with pytest.raises(InvalidArguments, match="beyond the calendar"):
            await ask("add_to_date", date="2026-11-15", **added)


days = st.dates(date(1900, 1, 1), date(2200, 1, 1))


@given(days, days)
def test_weekdays_are_counted_as_one_would_by_hand(one: date, two: date) -> None:
    start, end = sorted((one, two))
    end = min(end, start + timedelta(days=400))
    by_hand = sum((start + timedelta(days=step)).weekday() < 5 for step in range((end - start).days))
    assert weekdays_between(start, end) == by_hand


@given(days, days)
def test_a_span_leads_from_the_first_day_to_the_last(one: date, two: date) -> None:
    start, end = sorted((one, two))
    found = measure_span(start, end)
    assert add_months(start, found.years * 12 + found.months) + timedelta(days=found.days) == end
    assert 0 <= found.months < 12
    assert 0 <= found.days < 31


@given(days, st.integers(-500, 500).filter(bool))
def test_working_days_end_on_a_working_day(day: date, count: int) -> None:
    there = add_weekdays(day, count)
    assert there.weekday() < 5
    assert (there > day) == (count > 0)


ZONES = Zones("UTC")


@settings(max_examples=60)
@given(st.text(max_size=80))
def test_any_zone_is_found_or_refused_in_a_sentence(text: str) -> None:
    with contextlib.suppress(InvalidArguments):
        assert ZONES.find(text).name
