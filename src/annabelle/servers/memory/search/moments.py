"""Dates that a query names: "on 8 May 2023", "in March", "2023-05-08"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

_MONTHS = "january february march april may june july august september october november december"
_NUMBERS = {name: number for number, long in enumerate(_MONTHS.split(), 1) for name in (long, long[:3])}
_MONTH = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d{1,2})(?:-(\d{1,2}))?\b")
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+({_MONTH})\b\.?(?:,?\s+((?:19|20)\d\d))?", re.I)
_MONTH_FIRST = re.compile(
    rf"\b({_MONTH})\b\.?(?:\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+((?:19|20)\d\d))?", re.I
)
_YEAR = re.compile(r"\b(?:in|of|during|since|year)\s+((?:19|20)\d\d)\b", re.I)
# Words of their own as well: they are dates with a number beside them, or after one of these.
_WORDS_TOO = {"may", "march", "mar", "jan", "dec", "sep"}
_BEFORE = re.compile(r"\b(?:in|of|on|during|since|until|by|last|this|next|early|late|mid)\s*-?\s*$", re.I)


@dataclass(frozen=True, slots=True)
class Date:
    """A day, a month or a year, as far as it was named."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def __contains__(self, moment: datetime) -> bool:
        return (
            self.year in (None, moment.year) and self.month in (None, moment.month) and (self.day in (None, moment.day))
        )


def dates_in(query: str) -> tuple[Date, ...]:
    """Every date that the query names."""
    found = [Date(int(m[1]), int(m[2]), int(m[3]) if m[3] else None) for m in _ISO.finditer(query)]
    rest = _ISO.sub(" ", query)
    for match in _DAY_FIRST.finditer(rest):
        found.append(Date(int(match[3]) if match[3] else None, _NUMBERS[match[2].lower()], int(match[1])))
    rest = _DAY_FIRST.sub(" ", rest)
    for match in _MONTH_FIRST.finditer(rest):
        alone = not match[2] and not match[3]
        if alone and match[1].lower() in _WORDS_TOO and not _BEFORE.search(rest[: match.start()]):
            continue
        year, day = (int(match[number]) if match[number] else None for number in (3, 2))
        found.append(Date(year, _NUMBERS[match[1].lower()], day))
    if not found:
        found = [Date(int(match[1])) for match in _YEAR.finditer(rest)]
    return tuple(found)
