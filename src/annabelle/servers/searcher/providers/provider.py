"""What every source of search results is asked, and how it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from annabelle.servers.searcher.freshness import Freshness

SafeSearch = Literal["off", "moderate", "strict"]


@dataclass(frozen=True, slots=True)
class Question:
    """One search."""

    query: str
    count: int
    freshness: Freshness = field(default_factory=Freshness)
    safesearch: SafeSearch = "moderate"


@dataclass(frozen=True, slots=True)
class Hit:
    """A page that was found, in the source's own words."""

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


class Provider(Protocol):
    """A source. What it can not do it says with an error of ours; it never gives half an answer."""

    @property
    def name(self) -> str: ...

    @property
    def knows_days(self) -> bool:
        """Whether it can search from one day to another, not only the past day, week, month or year."""
        ...

    async def web(self, question: Question) -> list[Hit]: ...

    async def news(self, question: Question) -> list[Hit]: ...

    async def images(self, question: Question) -> list[ImageHit]: ...
