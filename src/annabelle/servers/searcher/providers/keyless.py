"""Search without a key, through the public pages of several search engines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from annabelle.core.errors import ProviderDown, ProviderFailed, ProviderRateLimited, ToolTimeout
from annabelle.servers.kit import StopSign, deferred_module, in_thread
from annabelle.servers.searcher.providers.provider import Hit, ImageHit, Question

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

Row = Mapping[str, object]


class MetaSearch(Protocol):
    """What of the library is used."""

    def text(self, query: str, **options: object) -> list[dict[str, object]]: ...

    def news(self, query: str, **options: object) -> list[dict[str, object]]: ...

    def images(self, query: str, **options: object) -> list[dict[str, object]]: ...


def _public_engines() -> MetaSearch:
    make = cast("Callable[..., MetaSearch]", ddgs.DDGS)  # pyright: ignore[reportUnknownMemberType]  loaded lazily there
    return make(timeout=_ENGINE_SECONDS)


class Keyless:
    """Works at once and for free; the engines may limit or refuse it at any time."""

    name = "keyless search"
    knows_days = False

    def __init__(self, make: Callable[[], MetaSearch] = _public_engines) -> None:
        self._make = make

    async def web(self, question: Question) -> list[Hit]:
        rows = await self._ask(
            lambda engines, options: engines.text(question.query, backend=_TEXT_ENGINES, **options), question
        )
        return [Hit(title=row.get("title"), url=row.get("href"), snippet=row.get("body")) for row in rows]

    async def news(self, question: Question) -> list[Hit]:
        rows = await self._ask(lambda engines, options: engines.news(question.query, **options), question)
        return [
            Hit(row.get("title"), row.get("url"), row.get("body"), age=row.get("date"), source=row.get("source"))
            for row in rows
        ]

    async def images(self, question: Question) -> list[ImageHit]:
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
        self, search: Callable[[MetaSearch, dict[str, str | int | None]], list[dict[str, object]]], question: Question
    ) -> list[Row]:
        span = question.freshness.covering()
        options: dict[str, str | int | None] = {
            "safesearch": _SAFETY[question.safesearch],
            "timelimit": span[0] if span else None,
            "max_results": question.count,
        }

        def work(stop: StopSign) -> list[Row]:
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
                # A page that changed its shape breaks the library's reading of it in many ways.
                raise ProviderFailed("The search engines' answer could not be read.", hint=_KEY_HINT) from error

        try:
            async with asyncio.timeout(_SECONDS):
                return await in_thread(work)
        except TimeoutError as error:
            raise ToolTimeout("The search engines did not answer in time.", hint=_KEY_HINT) from error


_KEY_HINT = "Try again later. A key makes search dependable: annabelle config set BRAVE_API_KEY"
