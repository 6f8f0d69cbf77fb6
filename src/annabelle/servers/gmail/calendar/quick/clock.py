"""Times of day and lengths in a sentence: 9am-10am, at 18:00, at noon, for 30 minutes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time, timedelta

from annabelle.servers.gmail.calendar.quick.cut import Cut

_WORDS = {"noon": time(12), "midday": time(12), "midnight": time(0)}
_HALF = r"(?P<h{n}>\d{{1,2}})(?:(?:[:h]|\.(?=\d\d\s?(?:[ap]\.?m|uhr)))(?P<m{n}>\d{{2}}))?\s?(?P<p{n}>[ap]\.?m\b\.?)?"
_ONE = _HALF.format(n=1)
_TWO = _HALF.format(n=2)
_RANGE = re.compile(
    rf"(?<![\d\-/.])(?:\b(?P<lead>from|between|at|von|de|zwischen)\s+)?{_ONE}\s*(?:uhr\s*)?"
    rf"(?:-|–|—|\bto\b|\buntil\b|\btill\b|\band\b|\bbis\b)"
    rf"\s*{_TWO}(?:\s*uhr\b)?(?![\d\-/]|\.\d)",
    re.IGNORECASE,
)
_EXACT = re.compile(
    rf"(?<![\d\-/.:])(?:(?:\b(?:at|um|à|a\s+las?|om|kl|alle)\b|@)\s*)?"
    rf"(?:(?P<word>\b(?:noon|midday|midnight)\b)|{_ONE}(?P<clock>\s*(?:uhr|o'clock)\b)?)(?![\d\-/]|\.\d)",
    re.IGNORECASE,
)
_BARE = re.compile(r"(?:\bat|@)\s*(?P<h1>\d{1,2})(?![\d:./\-]|\s*[ap]\.?m)\b(?!\s+[A-Z])", re.IGNORECASE)
_LENGTH = re.compile(
    r"\bfor\s+(?P<number>\d+(?:[.,]\d+)?|an?|half\s+an?|one|two|three)\s*"
    r"(?P<unit>minutes?|mins?|hours?|hrs?|h|m|days?|weeks?)\b(?:\s+and\s+a\s+(?P<half>half))?",
    re.IGNORECASE,
)
_NUMBERS = {"a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0}
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONGEST = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Hours:
    """When on a day it starts and, if that was said, when it ends."""

    start: time
    end: time | None = None


def take_hours(cut: Cut) -> Hours | None:
    """The first time of day that is clearly one: with minutes, with am or pm, or after "at"."""
    for match in cut.all(_RANGE):
        found = _range(match)
        if found is not None:
            cut.take(match)
            return found
    for match in cut.all(_EXACT):
        if match["word"]:
            cut.take(match)
            return Hours(_WORDS[match["word"].lower()])
        clear = match["m1"] is not None or match["p1"] is not None or match["clock"] is not None
        moment = _time(match["h1"], match["m1"], match["p1"]) if clear else None
        if moment is not None:
            cut.take(match)
            return Hours(moment)
    for match in cut.all(_BARE):
        moment = _time(match["h1"], None, None)
        if moment is not None:
            cut.take(match)
            # "at 5" is in the afternoon, "at 9" in the morning.
            return Hours(moment.replace(hour=moment.hour + 12) if 1 <= moment.hour <= 6 else moment)
    return None


def take_length(cut: Cut) -> timedelta | None:
    for match in cut.all(_LENGTH):
        number, unit = match["number"].lower(), match["unit"][0].lower()
        half = number.startswith("half")
        count = 0.5 if half else _NUMBERS[number] if number in _NUMBERS else float(number.replace(",", "."))
        length = _UNITS[unit] * min(count + (0.5 if match["half"] else 0), 10_000)
        if timedelta(0) < length <= _LONGEST:
            cut.take(match)
            return length
    return None


def _range(match: re.Match[str]) -> Hours | None:
    """A range is one of hours only if something says so: "2-3 people" is none."""
    if not any(match[group] for group in ("lead", "m1", "p1", "m2", "p2")):
        return None
    # "9-10am" and "1-3pm": what is said of the end is meant for the start too, unless that would be after it.
    end = _time(match["h2"], match["m2"], match["p2"])
    start = _time(match["h1"], match["m1"], match["p1"] or match["p2"])
    if start is not None and end is not None and start > end and match["p1"] is None and match["p2"]:
        start = _time(match["h1"], match["m1"], None)
    if start is None or end is None:
        return None
    twelve = match["p1"] is match["p2"] is None and end.hour < 12 and not match["h2"].startswith("0")
    if twelve and end < start < (evening := end.replace(hour=end.hour + 12)):
        end = evening  # "from 9 to 5", but not "22:00-2:00"
    return Hours(start, end)


def _time(hour: str, minute: str | None, half: str | None) -> time | None:
    hours, minutes = int(hour), int(minute or 0)
    if half is not None:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half.lower().startswith("p") else 0)
    return time(hours, minutes) if hours < 24 and minutes < 60 else None
