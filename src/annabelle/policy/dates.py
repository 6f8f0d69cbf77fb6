"""Whether a date in a call contradicts the day the person named: `move it to December 9` is not the 19th."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Final

# The first letters of each month in English, German, French, Spanish and Polish.
_MONTHS: Final = (
    r"jan|janv|ene|sty", r"feb|fév|fev|lut", r"mar|mär|mars", r"apr|avr|abr|kwi", r"may|mai|mayo|maj",
    r"jun|juin|cze", r"jul|juil|lip", r"aug|août|aout|ago|sie", r"sep|set|wrz", r"oct|okt|paź", r"nov|lis",
    r"dec|dez|déc|dic|gru",
)  # fmt: skip
_MONTH: Final = "|".join(f"(?P<m{number}>(?:{names})[a-zà-ÿąćęłńóśźż]*)" for number, names in enumerate(_MONTHS, 1))
_NAMED: Final = (
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s+(?:of\s+|de\s+)?(?:{_MONTH})\b"),
    re.compile(rf"\b(?:{_MONTH})\.?\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)"),
)
_ISO: Final = re.compile(r"\b\d{4}-(?P<month>\d{2})-(?P<day>\d{2})\b")
_WRITTEN: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ].*)?")
# A day that is reckoned from another one, and a stretch of days whose first has no month of its own.
_RECKONED: Final = re.compile(
    r"\b(?:before|after|prior|until|till?|from|between|vor|nach|bis|zwischen|avant|après|jusqu\w*|entre|antes|después|hasta|"
    r"przed|po)\b"
)


def contradicts(words: str, values: Iterable[str]) -> bool:
    """Whether the words name days of a month, and the dates among the values are others."""
    text = words.casefold()
    named = _days(text)
    given = [moment for value in values if (moment := _date(value)) is not None]
    if not (named and given) or _RECKONED.search(text):
        return False
    # A day more or less: a moment may be written in another zone, and a whole day ends with the next.
    near = {(day.month, day.day) for moment in given for day in (moment + timedelta(shift) for shift in (-1, 0, 1))}
    return not named & near


def _days(text: str) -> set[tuple[int, int]]:
    found = {(int(match["month"]), int(match["day"])) for match in _ISO.finditer(text)}
    for pattern in _NAMED:
        for match in pattern.finditer(text):
            month = next(number for number in range(1, 13) if match[f"m{number}"])
            found.add((month, int(match["day"])))
    return found


def _date(value: str) -> date | None:
    match = _WRITTEN.fullmatch(value.strip())
    try:
        return date.fromisoformat(match[1]) if match is not None else None
    except ValueError:
        return None
