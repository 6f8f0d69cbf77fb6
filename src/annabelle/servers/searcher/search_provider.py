"""The interface of a search provider: queries, hits and freshness."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal, Protocol

from annabelle.core.errors import InvalidArguments

FreshnessSpan = Literal["day", "week", "month", "year"]

_SPANS: dict[str, FreshnessSpan] = {"d": "day", "w": "week", "m": "month", "y": "year"}
_DAYS: tuple[tuple[int, FreshnessSpan], ...] = ((1, "day"), (7, "week"), (31, "month"), (366, "year"))
_RANGE = re.compile(r"(\d{4}-\d{2}-\d{2})\s*(?:to|\.\.)\s*(\d{4}-\d{2}-\d{2})")


@dataclass(frozen=True, slots=True)
class Freshness:
    """The past day, week, month or year, or a range of days."""

    span: FreshnessSpan | None = None
    days: tuple[date, date] | None = None

    @classmethod
    def parse(cls, text: str | None) -> Freshness:
        word = (text or "").strip().lower()
        if not word or word == "any":
            return cls()
        for letter, span in _SPANS.items():
            if word in (f"p{letter}", letter, span, f"past {span}"):
                return cls(span)
        written = _RANGE.fullmatch(word)
        if written:
            try:
                first, last = date.fromisoformat(written[1]), date.fromisoformat(written[2])
            except ValueError:
                first, last = date.max, date.min
            if first <= last:
                return cls(days=(first, last))
        raise InvalidArguments(
            "freshness is not understood.",
            hint="Use pd, pw, pm or py for the past day, week, month or year, or 2026-01-01to2026-01-31.",
            field="freshness",
        )

    def for_brave(self) -> str | None:
        if self.days:
            return f"{self.days[0].isoformat()}to{self.days[1].isoformat()}"
        return f"p{self.span[0]}" if self.span else None

    def shortest_span(self) -> FreshnessSpan | None:
        """The shortest span up to now that contains the range, for providers without ranges; None for all time."""
        if self.days is None:
            return self.span
        age = (datetime.now(UTC).date() - self.days[0]).days
        return next((span for days, span in _DAYS if age <= days), None)


SafeSearch = Literal["off", "moderate", "strict"]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search."""

    query: str
    count: int
    freshness: Freshness = field(default_factory=Freshness)
    safesearch: SafeSearch = "moderate"


@dataclass(frozen=True, slots=True)
class PageHit:
    """A page that was found, as the provider describes it."""

    title: object
    url: object
    snippet: object = None
    age: object = None
    source: object = None


@dataclass(frozen=True, slots=True)
class ImageHit:
    """A picture that was found: where it is, and on which page."""

    title: object
    image: object
    page: object = None
    thumbnail: object = None
    source: object = None
    width: object = None
    height: object = None


class SearchProvider(Protocol):
    """A search provider. It raises our errors for what it cannot do, and never returns partial results."""

    @property
    def name(self) -> str: ...

    @property
    def knows_days(self) -> bool:
        """Whether it can search a range of days."""
        ...

    async def web(self, question: SearchRequest) -> list[PageHit]: ...

    async def news(self, question: SearchRequest) -> list[PageHit]: ...

    async def images(self, question: SearchRequest) -> list[ImageHit]: ...
