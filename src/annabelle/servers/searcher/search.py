"""Tools that search for pages, news and images, and their results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Generic, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import Result, tool
from annabelle.servers.searcher.plain_text import one_line, parse_web_address, visible_words
from annabelle.servers.searcher.provider_chain import ProviderChain, SearchOutcome
from annabelle.servers.searcher.search_provider import Freshness, ImageHit, PageHit, SafeSearch, SearchRequest

_TITLE, _SNIPPET, _SOURCE = 200, 500, 80


class FoundPage(Result):
    """A page."""

    title: str
    url: str
    snippet: str = ""
    age: str | None = None
    source: str | None = None

    def to_lines(self) -> str:
        about = " · ".join(filter(None, (self.source, self.age)))
        return "\n   ".join(filter(None, (self.title, self.url, about, self.snippet)))


class FoundImage(Result):
    """A picture, and the page it is on."""

    title: str
    image_url: str
    page_url: str | None = None
    thumbnail: str | None = None
    source: str | None = None
    width: int | None = None
    height: int | None = None

    def to_lines(self) -> str:
        size = f"{self.width}×{self.height}" if self.width and self.height else None
        about = " · ".join(filter(None, (self.source, size)))
        page = f"on {self.page_url}" if self.page_url else None
        return "\n   ".join(filter(None, (self.title, self.image_url, page, about)))


F = TypeVar("F", FoundPage, FoundImage)


class _FoundResults(Result, Generic[F]):
    query: str
    provider: str
    results: list[F]
    note: str | None = None

    def to_text(self) -> str:
        lines = [f"{number}. {result.to_lines()}" for number, result in enumerate(self.results, start=1)]
        found = lines or [f"Nothing was found for {self.query!r}. Try other or fewer words."]
        return "\n".join([*found, f"[{self.provider}{f'. {self.note}' if self.note else ''}]"])


class SearchResults(_FoundResults[FoundPage]):
    """Pages, best first, and who found them."""


class ImageResults(_FoundResults[FoundImage]):
    """Pictures, best first, and who found them."""


def to_pages(hits: Iterable[PageHit], count: int) -> list[FoundPage]:
    """Each page once, without what is not a web address."""
    found: dict[str, FoundPage] = {}
    for hit in hits:
        url = parse_web_address(hit.url)
        if url is None:
            continue
        page = FoundPage(
            title=one_line(hit.title, _TITLE) or url,
            url=url,
            snippet=one_line(hit.snippet, _SNIPPET),
            age=one_line(hit.age, _SOURCE) or None,
            source=one_line(hit.source, _SOURCE) or None,
        )
        found.setdefault(_page_key(url), page)
    return list(found.values())[:count]


def to_images(hits: Iterable[ImageHit], count: int) -> list[FoundImage]:
    """Each picture once."""
    found: dict[str, FoundImage] = {}
    for hit in hits:
        image = parse_web_address(hit.image)
        if image is None:
            continue
        picture = FoundImage(
            title=one_line(hit.title, _TITLE) or image,
            image_url=image,
            page_url=parse_web_address(hit.page),
            thumbnail=parse_web_address(hit.thumbnail),
            source=one_line(hit.source, _SOURCE) or None,
            width=_parse_pixels(hit.width),
            height=_parse_pixels(hit.height),
        )
        found.setdefault(image, picture)
    return list(found.values())[:count]


def _page_key(url: str) -> str:
    """A key for addresses of the same page: without scheme, `www.`, trailing slash and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return f"{parts.netloc.lower().removeprefix('www.')}{parts.path.rstrip('/')}?{parts.query}"


def _parse_pixels(value: object) -> int | None:
    text = str(value) if isinstance(value, int | str) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else None


Query = Annotated[str, Field(min_length=1, max_length=400, description="What to search for, as one would type it")]
Count = Annotated[int, Field(ge=1, le=20, description="How many results")]
FreshnessText = Annotated[
    str | None,
    Field(
        max_length=40,
        description="Only newer ones: pd, pw, pm or py (past day, week, month, year), or 2026-01-01to2026-01-31",
    ),
]


class SearchTools:
    """web_search, news_search, image_search."""

    def __init__(self, chain: ProviderChain) -> None:
        self._chain = chain

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def web_search(
        self,
        query: Query,
        count: Count = 10,
        freshness: FreshnessText = None,
        safesearch: Annotated[SafeSearch, Field(description="How much to leave out what is not for everyone")] = (
            "moderate"
        ),
    ) -> SearchResults:
        """Search the web. Gives title, address and a snippet of each page; web_fetch reads a whole one."""
        request = _build_request(query, count, freshness, safesearch)
        outcome = await self._chain.ask(lambda provider, asked: provider.web(asked), request)
        return _to_results(request, outcome)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def news_search(self, query: Query, count: Count = 10, freshness: FreshnessText = None) -> SearchResults:
        """Search the news. Gives title, address, source and age of each article; web_fetch reads a whole one."""
        request = _build_request(query, count, freshness, "moderate")
        outcome = await self._chain.ask(lambda provider, asked: provider.news(asked), request)
        return _to_results(request, outcome)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def image_search(
        self,
        query: Query,
        count: Annotated[int, Field(ge=1, le=50, description="How many pictures")] = 5,
        safesearch: Annotated[
            Literal["off", "strict"], Field(description="How much to leave out what is not for everyone")
        ] = "strict",
    ) -> ImageResults:
        """Search for pictures. Gives the address of each picture, of its thumbnail and of the page it is on."""
        request = _build_request(query, count, None, safesearch)
        outcome = await self._chain.ask(lambda provider, asked: provider.images(asked), request)
        return ImageResults(
            query=request.query, provider=outcome.provider, results=to_images(outcome.hits, count), note=outcome.note
        )


def _to_results(request: SearchRequest, outcome: SearchOutcome[PageHit]) -> SearchResults:
    pages = to_pages(outcome.hits, request.count)
    return SearchResults(query=request.query, provider=outcome.provider, results=pages, note=outcome.note)


def _build_request(query: str, count: int, freshness: str | None, safesearch: SafeSearch) -> SearchRequest:
    asked = visible_words(query)
    if not asked:
        raise InvalidArguments("The query has no words in it.", field="query")
    return SearchRequest(asked, count, Freshness.parse(freshness), safesearch)
