"""The configured search providers in order of preference, and the keyless one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from annabelle.core.errors import (
    AnnabelleError,
    InvalidArguments,
    ProviderDown,
    ProviderFailed,
    ProviderRateLimited,
    ToolTimeout,
    Unavailable,
)
from annabelle.servers.kit import StopSign, deferred_module, in_thread
from annabelle.servers.searcher.config import SearcherConfig
from annabelle.servers.searcher.http_providers import BraveProvider, RequestSpacing, SearxngProvider
from annabelle.servers.searcher.search_provider import ImageHit, PageHit, SearchProvider, SearchRequest

if TYPE_CHECKING:
    import ddgs
    from ddgs import exceptions as ddgs_exceptions
else:
    ddgs = deferred_module("ddgs")
    ddgs_exceptions = deferred_module("ddgs.exceptions")


_ENGINE_SECONDS = 6
_SECONDS = 30.0
_TEXT_ENGINES = "duckduckgo,brave,startpage,mojeek,yahoo,wikipedia"
_SAFETY = {"off": "off", "moderate": "moderate", "strict": "on"}

EngineRow = Mapping[str, object]


class MetaSearch(Protocol):
    """The part of the library that is used."""

    def text(self, query: str, **options: object) -> list[dict[str, object]]: ...

    def news(self, query: str, **options: object) -> list[dict[str, object]]: ...

    def images(self, query: str, **options: object) -> list[dict[str, object]]: ...


def _public_engines() -> MetaSearch:
    make = cast("Callable[..., MetaSearch]", ddgs.DDGS)  # pyright: ignore[reportUnknownMemberType]  loaded lazily there
    return make(timeout=_ENGINE_SECONDS)


class KeylessProvider:
    """Needs no key; the engines may limit or refuse it at any time."""

    name = "keyless search"
    knows_days = False

    def __init__(self, make: Callable[[], MetaSearch] = _public_engines) -> None:
        self._make = make

    async def web(self, question: SearchRequest) -> list[PageHit]:
        rows = await self._ask(
            lambda engines, options: engines.text(question.query, backend=_TEXT_ENGINES, **options), question
        )
        return [PageHit(title=row.get("title"), url=row.get("href"), snippet=row.get("body")) for row in rows]

    async def news(self, question: SearchRequest) -> list[PageHit]:
        rows = await self._ask(lambda engines, options: engines.news(question.query, **options), question)
        return [
            PageHit(row.get("title"), row.get("url"), row.get("body"), age=row.get("date"), source=row.get("source"))
            for row in rows
        ]

    async def images(self, question: SearchRequest) -> list[ImageHit]:
        rows = await self._ask(lambda engines, options: engines.images(question.query, **options), question)
        return [
            ImageHit(
                title=row.get("title"),
                image=row.get("image"),
                page=row.get("url"),
                thumbnail=row.get("thumbnail"),
                source=row.get("source"),
                width=row.get("width"),
                height=row.get("height"),
            )
            for row in rows
        ]

    async def _ask(
        self,
        search: Callable[[MetaSearch, dict[str, str | int | None]], list[dict[str, object]]],
        question: SearchRequest,
    ) -> list[EngineRow]:
        span = question.freshness.shortest_span()
        options: dict[str, str | int | None] = {
            "safesearch": _SAFETY[question.safesearch],
            "timelimit": span[0] if span else None,
            "max_results": question.count,
        }

        def search_engines(stop: StopSign) -> list[EngineRow]:
            try:
                return [*search(self._make(), options)]
            except ddgs_exceptions.RatelimitException as error:
                raise ProviderRateLimited("The search engines ask for fewer requests.", hint=_KEY_HINT) from error
            except ddgs_exceptions.TimeoutException as error:
                raise ProviderDown("The search engines did not answer in time.", hint=_KEY_HINT) from error
            except ddgs_exceptions.DDGSException as error:
                if "No results found" in str(error):
                    return []
                raise ProviderDown("The search engines gave no answer.", hint=_KEY_HINT) from error
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                # When a result page changes, the library fails in many ways.
                raise ProviderFailed("The search engines' answer could not be read.", hint=_KEY_HINT) from error

        try:
            async with asyncio.timeout(_SECONDS):
                return await in_thread(search_engines)
        except TimeoutError as error:
            raise ToolTimeout("The search engines did not answer in time.", hint=_KEY_HINT) from error


_KEY_HINT = "Try again later. A key makes search dependable: annabelle config set BRAVE_API_KEY"


T = TypeVar("T")

MISSING = "Search is not connected."
MISSING_HINT = (
    "Run: annabelle config set BRAVE_API_KEY, or annabelle config set SEARXNG_URL, or "
    "annabelle config set SEARCH_WITHOUT_KEY true"
)


@dataclass(frozen=True, slots=True)
class SearchOutcome(Generic[T]):
    """The results, the provider that found them, and a note."""

    hits: list[T]
    provider: str
    note: str | None


class ProviderChain:
    """The configured providers, the best first."""

    def __init__(self, providers: Sequence[SearchProvider]) -> None:
        self._providers = tuple(providers)

    @classmethod
    def from_config(cls, config: SearcherConfig) -> ProviderChain:
        providers: list[SearchProvider] = []
        if config.brave_key:
            providers.append(BraveProvider(config.brave_url, config.brave_key, RequestSpacing(config.brave_spacing)))
        if config.searxng_url:
            providers.append(SearxngProvider(config.searxng_url))
        if config.without_key:
            providers.append(KeylessProvider())
        return cls(providers)

    async def missing(self) -> str | None:
        """Why no search works, as one sentence."""
        return None if self._providers else f"{MISSING} {MISSING_HINT}"

    async def ask(
        self, verb: Callable[[SearchProvider, SearchRequest], Awaitable[list[T]]], question: SearchRequest
    ) -> SearchOutcome[T]:
        """The first provider's results. The note, or the error if all fail, says why others gave none."""
        if not self._providers:
            raise Unavailable(MISSING, hint=MISSING_HINT)
        failures: list[AnnabelleError] = []
        for provider in self._providers:
            try:
                hits = await verb(provider, question)
            except InvalidArguments:
                raise
            except AnnabelleError as error:
                failures.append(error)
            else:
                notes = [failure.message for failure in failures]
                return SearchOutcome(
                    hits, provider.name, " ".join([*notes, *_widened_notes(provider, question)]) or None
                )
        if len(failures) == 1:
            raise failures[0]
        raise Unavailable(" ".join(failure.message for failure in failures), hint=failures[0].hint)


def _widened_notes(provider: SearchProvider, question: SearchRequest) -> list[str]:
    freshness = question.freshness
    if provider.knows_days or freshness.days is None:
        return []
    span = freshness.shortest_span()
    wider = f"the past {span}" if span else "all time"
    return [f"{provider.name} knows no range of days; these results are of {wider}."]
