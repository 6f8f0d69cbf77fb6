"""Times of calls made into moments, in every zone and over every change of clocks."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings, strategies as st

from annabelle.core.errors import InvalidArguments
from annabelle.servers.mail_calendar.calendar.event import EventSpan
from annabelle.servers.mail_calendar.calendar.recurrence import read_recurrence
from annabelle.servers.mail_calendar.calendar.times import add_length, read_moment, read_span, read_window

pytestmark = pytest.mark.req("SRV-MAI")

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from(sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})).map(ZoneInfo)
CLOCKS = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)).map(lambda moment: moment.replace(microsecond=0))
NOTHING = {"start_date_time": None, "start_date": None, "end_date_time": None, "end_date": None}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2027-03-28T02:30", "2027-03-28T03:30:00+02:00"),  # skipped: as if the clocks had not changed yet
        ("2026-10-25T02:30", "2026-10-25T02:30:00+02:00"),  # twice: the first
        ("2026-10-25T02:30+01:00", "2026-10-25T02:30:00+01:00"),  # the second, said with its offset
        ("2026-12-03T09:30:00Z", "2026-12-03T10:30:00+01:00"),
        ("2026-12-03 09:30", "2026-12-03T09:30:00+01:00"),
    ],
)
def test_a_time_is_what_clocks_there_show(text: str, moment: str) -> None:
    assert read_moment(text, BERLIN, "start_date_time").isoformat() == moment


@settings(deadline=None)
@given(CLOCKS, ZONES)
def test_a_time_read_is_a_time_that_exists(clock: datetime, zone: ZoneInfo) -> None:
    moment = read_moment(clock.isoformat(), zone, "start_date_time")
    assert moment.astimezone(UTC).astimezone(zone).isoformat() == moment.isoformat()
    shift = abs(moment.replace(tzinfo=None) - clock)
    assert shift <= timedelta(days=1)  # more than nothing only where a clock skips


@settings(deadline=None)
@given(CLOCKS, ZONES, st.timedeltas(timedelta(minutes=1), timedelta(days=20)))
def test_a_moved_event_keeps_its_real_length(clock: datetime, zone: ZoneInfo, length: timedelta) -> None:
    start = read_moment("2027-03-20T09:00", BERLIN, "start_date_time")
    before = EventSpan(start, add_length(start, length))
    after = read_span(zone, **{**NOTHING, "start_date_time": clock.isoformat()}, before=before)
    assert after is not None
    assert isinstance(after.end, datetime)
    assert isinstance(after.start, datetime)
    assert after.end.astimezone(UTC) - after.start.astimezone(UTC) == length


@settings(deadline=None)
@given(CLOCKS, st.timedeltas(timedelta(seconds=1), timedelta(days=400)), ZONES)
def test_an_event_never_ends_before_it_starts(clock: datetime, back: timedelta, zone: ZoneInfo) -> None:
    early = (clock - back).replace(microsecond=0)
    edges = {"start_date_time": f"{clock.isoformat()}Z", "end_date_time": f"{early.isoformat()}Z"}
    with pytest.raises(InvalidArguments, match="before it starts"):
        read_span(zone, **{**NOTHING, **edges})


@pytest.mark.parametrize(("start", "end"), [("soon", None), ("2026-13-01", None), ("2026-12-03", "2026-12-01")])
def test_what_is_wrong_with_a_time_is_said_without_the_names_of_arguments(start: str, end: str | None) -> None:
    with pytest.raises(InvalidArguments) as refused:
        read_window(start, end, BERLIN, datetime(2026, 11, 17, tzinfo=UTC))
    assert refused.value.field in ("time_min", "time_max")
    said = refused.value.body().for_person
    assert "min" not in said
    assert "_" not in said
    assert start in said or "ends before it begins" in said


NEARLY_TIMES = st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}.{0,3})?", fullmatch=True)


@settings(deadline=None)
@example("0D", "start_date")
@example("5m", "start_date_time")
@given(st.text(max_size=40) | NEARLY_TIMES, st.sampled_from(sorted(NOTHING)))
def test_no_text_is_a_time_by_accident(text: str, field: str) -> None:
    start = {"end_date": {"start_date": "1900-01-01"}, "end_date_time": {"start_date_time": "1900-01-01T00:00"}}
    try:
        span = read_span(BERLIN, **{**NOTHING, **start.get(field, {}), field: text})
    except InvalidArguments:
        return
    if not text:
        return  # as if the field had not been given
    assert span is not None
    said = datetime.fromisoformat(text.strip())  # raises for what is no time
    read = span.start if field.startswith("start") else span.end
    assert abs(
        (read.replace(tzinfo=None) if isinstance(read, datetime) else datetime.combine(read, said.time()))
        - said.replace(tzinfo=None)
    ) <= timedelta(days=2)


@settings(deadline=None)
@given(st.text(alphabet="RULEFQ=;:WKYDAIBNTCO,0123456789-TZ\n", max_size=60))
def test_no_text_is_a_rule_that_breaks_out_of_its_line(text: str) -> None:
    span = EventSpan(date(2026, 12, 3), date(2026, 12, 4))
    try:
        lines = read_recurrence([text], span, BERLIN)
    except InvalidArguments:
        return
    assert all("\n" not in line and "\r" not in line for line in lines)


@pytest.mark.parametrize(
    ("given_rule", "rule"),
    [
        ("FREQ=WEEKLY", "RRULE:FREQ=WEEKLY"),
        ("rrule:freq=daily;until=20270330", "RRULE:FREQ=DAILY;UNTIL=20270330T215959Z"),
        ("RRULE:FREQ=DAILY;UNTIL=20270330T100000", "RRULE:FREQ=DAILY;UNTIL=20270330T080000Z"),
        ("RRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=3", "RRULE:FREQ=MONTHLY;COUNT=3;BYDAY=-1FR"),
        ("EXDATE;TZID=Europe/Berlin:20270330T090000", "EXDATE:20270330T070000Z"),
        ("exdate:20270323,20270330", "EXDATE:20270323T080000Z,20270330T070000Z"),
    ],
)
def test_a_rule_is_made_to_fit_its_event(given_rule: str, rule: str) -> None:
    start = read_moment("2027-03-20T09:00", BERLIN, "start_date_time")
    assert read_recurrence([given_rule], EventSpan(start, start), BERLIN) == (rule,)


@pytest.mark.parametrize(
    "rule",
    [
        "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
        "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=-29",
        "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "RRULE:FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
        "RRULE:FREQ=DAILY;BYHOUR=8,12,18",
    ],
)
def test_a_rule_that_people_make_is_taken(rule: str) -> None:
    span = EventSpan(date(2026, 12, 3), date(2026, 12, 4))
    assert len(read_recurrence([rule], span, BERLIN)) == 1


@pytest.mark.parametrize(
    "rule",
    [
        "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=1",
        "RRULE:FREQ=DAILY;BYMONTH=13",
        "RRULE:FREQ=DAILY;BYMONTHDAY=32",
        "RRULE:FREQ=DAILY;BYSETPOS=5",
        "RRULE:FREQ=WEEKLY;BYWEEKNO=99",
        "RRULE:FREQ=WEEKLY;BYYEARDAY=400",
        "RRULE:FREQ=DAILY;INTERVAL=0",
        "RRULE:FREQ=MINUTELY",
        "RRULE:FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9;BYMINUTE=0,1,2,3,4,5",
    ],
)
def test_a_rule_that_would_be_looked_for_without_end_is_refused(rule: str) -> None:
    with pytest.raises(InvalidArguments):
        read_recurrence([rule], EventSpan(date(2026, 12, 3), date(2026, 12, 4)), BERLIN)


def test_a_window_is_thirty_days_from_now_unless_told_otherwise() -> None:
    now = datetime(2026, 11, 16, 8, tzinfo=UTC)
    window = read_window(None, None, BERLIN, now)
    assert (window.start, window.end) == (now, now + timedelta(days=30))
    day = read_window("2027-03-28", "2027-03-28", BERLIN, now)
    assert day.end.astimezone(UTC) - day.start.astimezone(UTC) == timedelta(hours=23)
    with pytest.raises(InvalidArguments, match="five years"):
        read_window("2026-01-01", "2036-01-01", BERLIN, now)


def test_days_and_times_may_be_words() -> None:
    today = datetime.now(BERLIN).date()
    window = read_window("tomorrow", "tomorrow", BERLIN, datetime.now(UTC))
    assert window.start.astimezone(BERLIN).date() == today + timedelta(days=1)
    assert window.end.astimezone(BERLIN).date() == today + timedelta(days=2)
    span = read_span(BERLIN, start_date_time="tomorrow 9:30", start_date=None, end_date_time=None, end_date=None)
    assert span is not None
    assert isinstance(span.start, datetime)
    assert (span.start.date(), span.start.hour, span.start.minute) == (today + timedelta(days=1), 9, 30)
    with pytest.raises(InvalidArguments, match="someday"):
        read_window("someday", None, BERLIN, datetime.now(UTC))
