"""A SearXNG instance, usually the user's own."""

from __future__ import annotations

import base64
from urllib.parse import unquote, urlsplit

from annabelle.core.errors import ProviderDown, ProviderFailed, ProviderRateLimited, ProviderRefused
from annabelle.servers.searcher.providers.asking import JsonMap, Service, entries
from annabelle.servers.searcher.providers.provider import Hit, ImageHit, Question

_SAFETY = {"off": 0, "moderate": 1, "strict": 2}


class SearXNG:
    """Asks through its JSON interface, which its owner has to switch on."""

    name = "SearXNG"
    knows_days = False

    def __init__(self, address: str) -> None:
        self._service = Service(*_without_credentials(address))

    async def web(self, question: Question) -> list[Hit]:
        return [_hit(entry) for entry in await self._ask("general", question)]

    async def news(self, question: Question) -> list[Hit]:
        return [_hit(entry) for entry in await self._ask("news", question)]

    async def images(self, question: Question) -> list[ImageHit]:
        return [
            ImageHit(
                title=entry.get("title"),
                image=entry.get("img_src"),
                page=entry.get("url"),
                thumbnail=entry.get("thumbnail_src"),
                source=entry.get("source") or entry.get("engine"),
            )
            for entry in await self._ask("images", question)
        ]

    async def _ask(self, category: str, question: Question) -> list[JsonMap]:
        parameters = {
            "q": question.query,
            "format": "json",
            "categories": category,
            "safesearch": _SAFETY[question.safesearch],
            "time_range": question.freshness.covering(),
        }
        answer = await self._service.ask("/search", parameters)
        if answer.status == 401:
            raise ProviderRefused(
                "SearXNG asks for a user name and password.",
                hint="Put them into the address: annabelle config set SEARXNG_URL https://user:password@…",
            )
        if answer.status == 403:
            raise ProviderRefused(
                "SearXNG refuses to answer with JSON.", hint="Add json to search.formats in its settings.yml."
            )
        if answer.status == 429:
            raise ProviderRateLimited("SearXNG asks for fewer requests.", hint="Try again in a minute.")
        if answer.status >= 500:
            raise ProviderDown(f"SearXNG is out of order for now ({answer.status}).", hint="Try again later.")
        if answer.status != 200:
            raise ProviderFailed(
                f"SearXNG did not take the request ({answer.status}).", hint="Check SEARXNG_URL: annabelle config list"
            )
        return entries(answer.body, "results")


def _without_credentials(address: str) -> tuple[str, dict[str, str]]:
    """An instance behind a password: `https://user:password@search.example` goes into a header, not into addresses."""
    parts = urlsplit(address)
    if parts.username is None:
        return address, {}
    words = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    host = parts.netloc.rpartition("@")[2]
    token = base64.b64encode(words.encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {token}"}


def _hit(entry: JsonMap) -> Hit:
    return Hit(
        title=entry.get("title"),
        url=entry.get("url"),
        snippet=entry.get("content"),
        age=entry.get("publishedDate"),
        source=entry.get("source") or entry.get("engine"),
    )
