"""Parses a search query: keywords, speakers and dates."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from annabelle.core.text import split_search_words
from annabelle.language.lexicon import load_lexicon
from annabelle.store.memory.query_parts import SearchTerm

_WORDS = load_lexicon("recall")
_NUMBERS = {name: number for number, long in enumerate(_WORDS.phrases("months"), 1) for name in (long, long[:3])}
_MONTH = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d{1,2})(?:-(\d{1,2}))?\b")
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+({_MONTH})\b\.?(?:,?\s+((?:19|20)\d\d))?", re.I)
_MONTH_FIRST = re.compile(
    rf"\b({_MONTH})\b\.?(?:\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+((?:19|20)\d\d))?", re.I
)
_YEAR = re.compile(rf"\b{_WORDS.alternation('before_year')}\s+((?:19|20)\d\d)\b", re.I)
_MONTHS_OR_WORDS = _WORDS.words("months_or_words")
_BEFORE = re.compile(rf"\b{_WORDS.alternation('before_month')}\s*-?\s*$", re.I)


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A day, a month or a year, as far as it was named."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def __contains__(self, moment: datetime) -> bool:
        return (
            self.year in (None, moment.year) and self.month in (None, moment.month) and (self.day in (None, moment.day))
        )


def find_dates(query: str) -> tuple[NamedDate, ...]:
    """Every date that the query names."""
    found = [NamedDate(int(m[1]), int(m[2]), int(m[3]) if m[3] else None) for m in _ISO.finditer(query)]
    rest = _ISO.sub(" ", query)
    for match in _DAY_FIRST.finditer(rest):
        found.append(NamedDate(int(match[3]) if match[3] else None, _NUMBERS[match[2].lower()], int(match[1])))
    rest = _DAY_FIRST.sub(" ", rest)
    for match in _MONTH_FIRST.finditer(rest):
        alone = not match[2] and not match[3]
        if alone and match[1].lower() in _MONTHS_OR_WORDS and not _BEFORE.search(rest[: match.start()]):
            continue
        year, day = (int(match[number]) if match[number] else None for number in (3, 2))
        found.append(NamedDate(year, _NUMBERS[match[1].lower()], day))
    if not found:
        found = [NamedDate(int(match[1])) for match in _YEAR.finditer(rest)]
    return tuple(found)


QUESTION_WORDS = _WORDS.words("question")
STOP_WORDS = QUESTION_WORDS | _WORDS.words("common")
_NO_KEYWORDS = STOP_WORDS | _WORDS.words("in_every_fact")

READ_CHARACTERS = 2_000
"""Of a longer question, the beginning is looked for."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A question, taken apart."""

    words: tuple[str, ...]
    meaning: str
    speakers: frozenset[str] = frozenset()
    dates: tuple[NamedDate, ...] = ()


def parse_query(text: str, speakers: Collection[str] = ()) -> SearchQuery:
    """Take a question apart. `speakers`: names, folded, of those who speak in what is searched.

    A name that is asked about says who spoke. As a word it would lead to the turns in which others address them.
    """
    text = text[:READ_CHARACTERS]
    said = split_search_words(text)
    named = frozenset(said).intersection(speakers)
    telling = [word for word in said if word not in STOP_WORDS and word not in named]
    meant = [
        word
        for word in _WORD.findall(text)
        if (folded := split_search_words(word)) and not (folded[0] in QUESTION_WORDS or folded[0] in named)
    ]
    return SearchQuery(
        words=tuple(telling or [word for word in said if word not in named] or said),
        meaning=" ".join(part for part in meant if part != "s") or text,
        speakers=named,
        dates=find_dates(text),
    )


def keywords(text: str) -> frozenset[str]:
    """Words of more than two letters, or two of a writing where those are a word; without the common ones."""
    return frozenset(
        word
        for word in split_search_words(text)
        if len(word) > (2 if word.isascii() else 1) and word not in _NO_KEYWORDS
    )


def choose_rare(terms: Sequence[SearchTerm], most: int, least: int = 0) -> list[SearchTerm]:
    """The rarest words that stand in at most `most` places together, and in any case the `least` rarest."""
    chosen: list[SearchTerm] = []
    total = 0
    for term in sorted((term for term in terms if term.frequency), key=lambda term: term.frequency):
        total += term.frequency
        if len(chosen) >= least and total > most:
            break
        chosen.append(term)
    return chosen


def overlap_share(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the smaller set is in the other, from 0 to 1."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0
