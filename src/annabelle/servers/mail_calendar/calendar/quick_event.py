"""Reads an event from one sentence, relative to now in the user's time zone.

dateparser reads the dates. This module finds them in the sentence and removes them. The rest is the title.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from annabelle.core.errors import InvalidArguments
from annabelle.language.spoken_dates import ENGLISH, OTHER_LANGUAGES, parse_spoken, to_clock
from annabelle.servers.mail_calendar.calendar.event import EventDraft, EventSpan
from annabelle.servers.mail_calendar.calendar.times import add_length, to_zone

_EXAMPLE = 'Write it like "Lunch with Ana tomorrow at 12:30" or "Holiday Dec 24".'
_WORDS = Path(__file__).with_name("quick_words.toml")
_DAY_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_LONGEST = timedelta(days=366)
_LONGEST_PHRASE = 6
_GAP = "\x1f"
_EDGES = " \t,;.:!-–—" + _GAP

# Patterns; %name% stands for the words of that name in quick_words.toml.
_WORD = r"\d+-\d+-\d+|\d+(?:[./:]\d+)+\.?|[\w'’]+(?:-[^\W\d]\w*)*\.?"
_BETWEEN = r"[\s,]*"
_NUMERIC_DATE = r"\d+[./-]\d+[./-]\d+|(?!24/7)\d{1,2}/\d{1,2}|\d{1,2}\.\d{1,2}\."
_DOTTED_DATE = r"(\d{1,2})\.(\d{1,2})\."
_CLEAR = r"\d|[^\W\d]{4}"
"""A short foreign word alone may be a name: "Call Mar" is no day in March."""
_NO_DAY = r"(?:%no_day%)|.*\s(?:%dangling%)|.*(?::|\d\s?[ap]\.?m\b|\d\s+\d{1,2}$).*"
"""Times of day, words that belong to what follows, and dates followed by an unrelated number."""
_UNTIL = r"\s*(?:-|–|—|\b(?:%until%)\b)\s*"
_UNTIL_DAY = rf"{_UNTIL}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d|\s*[ap]\.?m)"
_THURSDAY = r"\b(?:%thursday%)\b"
_NEXT = r"(?:%next%)\b"
_DANGLING = rf"(?:\s+(?:%dangling%))+(?=\s*(?:{_GAP}|$))"
_HALF = (
    r"(?P<h{n}>\d{{1,2}})(?:(?:[:h]|\.(?=\d\d\s?(?:[ap]\.?m|%oclock%)))(?P<m{n}>\d{{2}}))?\s?(?P<p{n}>[ap]\.?m\b\.?)?"
)
_AFTER_CLOCK = r"(?![\d\-/]|\.\d)"
_CLOCK_RANGE = (
    rf"(?<![\d\-/.])(?:\b(?P<lead>%from%)\s+)?{_HALF.format(n=1)}\s*(?:(?:%oclock%)\s*)?"
    rf"(?:-|–|—|\b(?:%until%|%and%)\b)\s*{_HALF.format(n=2)}(?:\s*(?:%oclock%)\b)?{_AFTER_CLOCK}"
)
_CLOCK = (
    r"(?<![\d\-/.:])(?:(?:\b(?:%at_clock%)\b|@)\s*)?(?:(?P<noon>\b(?:%noon%)\b)|(?P<midnight>\b(?:%midnight%)\b)"
    rf"|{_HALF.format(n=1)}(?P<clock>\s*(?:%oclock%)\b)?){_AFTER_CLOCK}"
)
_BARE_CLOCK = r"(?:\b(?:%at%)|@)\s*(?P<h1>\d{1,2})(?![\d:./\-]|\s*[ap]\.?m)\b(?!\s+[^\W\d])"
_LENGTH = (
    r"\b(?:%for%)\s+(?:(?P<half>%half%)\s+|(?P<count>\d+(?:[.,]\d+)?|[^\W\d]+(?=\s))\s*)"
    r"(?P<unit>[^\W\d]+)\b(?P<more>\s+(?:%and_half%)\b)?"
)
_REPEAT = r"\b(?P<rule>%repeat%)s?\b|\b(?:%every%)\s+(?P<weekday>[^\W\d]{3,}?)s?\b"
_PLAIN_PLACE = r"(?:%plain_place%)"
_PLACE = rf"(?:\b(?:%at%)|@)\s+(?P<place>[^{_GAP}]+?)(?=\s+(?:%before_place_ends%)\b|\s*[{_GAP},;]|\s*$)"


@dataclass(frozen=True, slots=True)
class _NamedDay:
    day: date
    later: date | None = None
    """The next matching day if `day` is today."""
    not_today: bool = False
    """Whether `later` is meant without an hour: "holiday on friday", said on a friday."""
    relative: bool = False
    wait: timedelta | None = None
    """Time until then, if given to the minute: "in 3 hours"."""


@dataclass(frozen=True, slots=True)
class _ClockHours:
    start: time
    end: time | None = None


def read_sentence(sentence: str, now: datetime) -> EventDraft:
    """Read an event. `now` has the user's zone. Raises InvalidArguments without a time or a title."""
    zone = now.tzinfo
    assert isinstance(zone, ZoneInfo)
    text = _RemainingText(sentence)
    length = _take_length(text)
    rule = _take_rule(text, now)
    days = _take_days(text, now, ENGLISH)
    hours = _take_hours(text)
    days = days or _take_days(text, now, OTHER_LANGUAGES)
    if days is None and hours is None and rule is None:
        raise InvalidArguments("The sentence does not tell when.", hint=_EXAMPLE, field="text")
    if days is None:
        days = (rule[1] if rule is not None else _NamedDay(now.date(), now.date() + _DAY), None)
    try:
        span = _build_span(*days, hours, length, now, zone)
    except (OverflowError, ValueError) as error:
        raise InvalidArguments(
            "The sentence tells a time that is too far away.", hint=_EXAMPLE, field="text"
        ) from error
    location = _take_place(text)
    summary = text.to_title()
    if not summary:
        raise InvalidArguments("The sentence does not tell what.", hint=_EXAMPLE, field="text")
    recurrence = (rule[0],) if rule is not None else ()
    return EventDraft(summary=summary, span=span, location=location, recurrence=recurrence)


class _RemainingText:
    """The part of a sentence not yet understood. Gaps separate words that were not adjacent."""

    def __init__(self, sentence: str) -> None:
        self.text = sentence.replace(_GAP, " ")

    def find_all(self, template: str) -> Iterator[re.Match[str]]:
        return _pattern(template).finditer(self.text)

    def remove(self, start: int, end: int) -> None:
        self.text = f"{self.text[:start]} {_GAP} {self.text[end:]}"

    def to_title(self) -> str:
        """The rest, without dangling prepositions."""
        left = _pattern(_DANGLING).sub(" ", self.text)
        return " ".join(left.replace(_GAP, " ").split()).strip(_EDGES)


@cache
def _words() -> dict[str, list[str] | dict[str, str]]:
    return tomllib.loads(_WORDS.read_text(encoding="utf-8"))


@cache
def _pattern(template: str) -> re.Pattern[str]:
    def alternatives(match: re.Match[str]) -> str:
        return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in sorted(_words()[match[1]], reverse=True))

    return re.compile(re.sub(r"%(\w+)%", alternatives, template), re.IGNORECASE)


def _take_days(
    text: _RemainingText, now: datetime, languages: tuple[str, ...]
) -> tuple[_NamedDay, _NamedDay | None] | None:
    """Remove and return the first day and, after "to", the last day."""
    phrases = [
        (start, end, found)
        for start, end in _phrases(text.text)
        if (found := _read_day(text.text[start:end], now, languages))
    ]
    if not phrases:
        return None
    start, end, first = max(phrases, key=lambda phrase: _certainty(text.text, *phrase))
    tail = text.text[end:]
    last, length = _read_last_day(tail, first, now, languages)
    text.remove(start, end + length)
    return first, last


def _certainty(text: str, start: int, end: int, day: _NamedDay) -> tuple[bool, bool, int, int]:
    """A date with figures is more certain than "tomorrow", and that more than a weekday, which may be a name."""
    return re.search(r"\d", text[start:end]) is not None, day.relative, -start, end - start


def _read_last_day(
    tail: str, first: _NamedDay, now: datetime, languages: tuple[str, ...]
) -> tuple[_NamedDay | None, int]:
    """The day after "to", and the length of its words."""
    link = _pattern(_UNTIL).match(tail)
    if link is None:
        return None, 0
    for start, end in sorted(_phrases(tail), reverse=True):
        if start == link.end() and (last := _read_day(tail[start:end], now, languages)):
            if last.day < first.day:
                last = _read_day(tail[start:end], datetime.combine(first.day, time.min, now.tzinfo), languages) or last
            return last, end
    short = _pattern(_UNTIL_DAY).match(tail)
    if short is not None and first.day.day < int(short["day"]) <= 31:
        try:
            return _NamedDay(first.day.replace(day=int(short["day"]))), short.end()
        except ValueError:
            return None, 0
    return None, 0


def _phrases(text: str) -> Iterator[tuple[int, int]]:
    """Spans of up to six adjacent words that may name a day."""
    tokens = list(_pattern(_WORD).finditer(text))
    for first, token in enumerate(tokens):
        end = token.start()
        for following in tokens[first : first + _LONGEST_PHRASE]:
            if not _pattern(_BETWEEN).fullmatch(text, end, following.start()):
                break
            end = following.end()
            yield token.start(), end


def _read_day(phrase: str, now: datetime, languages: tuple[str, ...]) -> _NamedDay | None:
    if _pattern(_NO_DAY).fullmatch(phrase) or (languages != ENGLISH and not _pattern(_CLEAR).search(phrase)):
        return None
    if not re.search(r"[^\W\d]", phrase):
        if not _pattern(_NUMERIC_DATE).fullmatch(phrase):
            return None
        phrase = _pattern(_DOTTED_DATE).sub(r"\2/\1/", phrase).rstrip("/")  # dateparser takes 3.12. for a time
    phrase = _pattern(_THURSDAY).sub("thu", phrase)
    wall = now.replace(tzinfo=None, microsecond=0)
    found = parse_spoken(phrase, wall, languages)
    if found is None or not found.names_day or (found.at.date() < now.date() and str(found.at.year) not in phrase):
        return None
    if found.relative and (phrase[0].isdigit() or phrase[-1].isdigit() or _read_length(phrase)):
        return None  # "3 weeks" is a length, "in 3 weeks" a day, and the 3 of "tomorrow 3" something else
    if found.relative or found.has_time:
        wait = found.at - wall if found.relative and found.has_time else None
        return _NamedDay(found.at.date(), relative=True, wait=wait)
    # Relative to yesterday, today's weekday and date mean today.
    before = parse_spoken(phrase, wall - _DAY, languages)
    if before is None or before.at >= found.at or _pattern(_NEXT).match(phrase):
        return _NamedDay(found.at.date())
    return _NamedDay(before.at.date(), found.at.date(), not_today=found.at - before.at == timedelta(days=7))


def _read_length(text: str) -> timedelta | None:
    now = datetime(2026, 1, 1)
    found = parse_spoken(f"{text} ago", now, ENGLISH)
    return now - found.at if found is not None and found.at < now else None


def _take_length(text: _RemainingText) -> timedelta | None:
    for match in text.find_all(_LENGTH):
        unit = _read_length(f"1 {match['unit']}")
        length = _read_length(f"{match['count']} {match['unit']}") if match["count"] else unit and unit / 2
        if unit and length and length + unit <= _LONGEST:
            text.remove(*match.span())
            return length + unit / 2 if match["more"] else length
    return None


def _take_rule(text: _RemainingText, now: datetime) -> tuple[str, _NamedDay] | None:
    """Remove and return the rule and its first day."""
    rules = _words()["repeat"]
    assert isinstance(rules, dict)
    for match in text.find_all(_REPEAT):
        rule = rules[" ".join(match["rule"].lower().split())] if match["rule"] else _read_weekday_rule(match["weekday"])
        if rule is None:
            continue
        text.remove(*match.span())
        codes = rule.partition("BYDAY=")[2] or _DAY_CODES
        coming = (now.date() + timedelta(days=ahead) for ahead in range(14))
        first, later, *_ = [day for day in coming if _DAY_CODES[day.weekday()] in codes]
        return f"RRULE:FREQ={rule}", _NamedDay(first, later)
    return None


def _read_weekday_rule(word: str) -> str | None:
    found = parse_spoken(word, datetime(2026, 1, 1), ENGLISH)
    if found is None or found.relative or not found.names_day:
        return None
    return f"WEEKLY;BYDAY={_DAY_CODES[found.at.weekday()]}"


def _take_hours(text: _RemainingText) -> _ClockHours | None:
    """Remove and return the first clear time: with minutes, with am or pm, or after "at"."""
    for template, read in ((_CLOCK_RANGE, _read_range), (_CLOCK, _read_clock), (_BARE_CLOCK, _read_bare)):
        for match in text.find_all(template):
            if (hours := read(match)) is not None:
                text.remove(*match.span())
                return hours
    return None


def _read_range(match: re.Match[str]) -> _ClockHours | None:
    """A range needs a sign of hours: "2-3 people" has none."""
    if not any(match[group] for group in ("lead", "m1", "p1", "m2", "p2")):
        return None
    # "9-10am" and "1-3pm": am or pm of the end also applies to the start, unless the start would be later.
    end = to_clock(match["h2"], match["m2"], match["p2"])
    start = to_clock(match["h1"], match["m1"], match["p1"] or match["p2"])
    if start is not None and end is not None and start > end and match["p1"] is None and match["p2"]:
        start = to_clock(match["h1"], match["m1"])
    if start is None or end is None:
        return None
    twelve = match["p1"] is match["p2"] is None and end.hour < 12 and not match["h2"].startswith("0")
    if twelve and end < start < (evening := end.replace(hour=end.hour + 12)):
        end = evening  # "from 9 to 5", but not "22:00-2:00"
    return _ClockHours(start, end)


def _read_clock(match: re.Match[str]) -> _ClockHours | None:
    if match["noon"] or match["midnight"]:
        return _ClockHours(time(12 if match["noon"] else 0))
    clear = match["m1"] or match["p1"] or match["clock"]
    start = to_clock(match["h1"], match["m1"], match["p1"]) if clear else None
    return None if start is None else _ClockHours(start)


def _read_bare(match: re.Match[str]) -> _ClockHours | None:
    """ "at 5" is in the afternoon, "at 9" in the morning."""
    start = to_clock(match["h1"], None, "pm" if 1 <= int(match["h1"]) <= 6 else None)
    return None if start is None else _ClockHours(start)


def _build_span(
    first: _NamedDay,
    last: _NamedDay | None,
    hours: _ClockHours | None,
    length: timedelta | None,
    now: datetime,
    zone: ZoneInfo,
) -> EventSpan:
    if hours is None and first.wait is not None:
        start = add_length(now.replace(second=0, microsecond=0), first.wait)
        return EventSpan(start, add_length(start, length or _HOUR))
    if hours is None:
        day = first.later if first.later is not None and first.not_today else first.day
        if last is not None and last.day < day:
            last = _NamedDay(last.day + (day - first.day))  # "sunday to tuesday", said on a sunday
        return EventSpan(day, _last_day(day, last, length) + _DAY)
    start = to_zone(datetime.combine(first.day, hours.start), zone)
    if start.astimezone(UTC) < now.astimezone(UTC) and first.later is not None:
        start = to_zone(datetime.combine(first.later, hours.start), zone)
    closing = max(start.date(), last.day) if last is not None else start.date()
    if hours.end is not None:
        end = to_zone(datetime.combine(closing, hours.end), zone)
        past_midnight = end.astimezone(UTC) <= start.astimezone(UTC)
        return EventSpan(start, to_zone(datetime.combine(closing + _DAY, hours.end), zone) if past_midnight else end)
    if closing > start.date():
        # From an hour on one day until the end of another day.
        return EventSpan(start, to_zone(datetime.combine(closing + _DAY, time.min), zone))
    return EventSpan(start, add_length(start, length or _HOUR))


def _last_day(first: date, last: _NamedDay | None, length: timedelta | None) -> date:
    if last is None:
        return first + timedelta(days=max(0, (length or _DAY).days - 1))
    if last.day < first:
        raise InvalidArguments("The event would end before it starts.", hint=_EXAMPLE, field="text")
    return last.day


def _take_place(text: _RemainingText) -> str:
    for match in text.find_all(_PLACE):
        place = match["place"].strip()
        if place[:1].isupper() or place[:1].isdigit() or _pattern(_PLAIN_PLACE).match(place):
            text.remove(*match.span())
            return place
    return ""
