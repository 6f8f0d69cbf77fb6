"""Search providers over HTTP: Brave Search and SearXNG."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlencode, urlsplit

from annabelle.core.errors import ProviderDown, ProviderFailed, ProviderRateLimited, ProviderRefused
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import deferred_module
from annabelle.servers.kit.host_access import AllowedPrivateHosts, HostAccess
from annabelle.servers.kit.json_access import get_object, get_objects
from annabelle.servers.searcher.search_provider import ImageHit, PageHit, SearchRequest

if TYPE_CHECKING:
    from annabelle.servers.kit import http_client
else:
    http_client = deferred_module("annabelle.servers.kit.http_client")


_SECONDS = 15.0
_MAX_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    status: int
    body: JsonObject
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class SearchService:
    """A service at an address from the settings, which may be on the user's own network. Redirects are not followed,
    because a key goes along."""

    address: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    async def ask(self, path: str, parameters: Mapping[str, str | int | None]) -> ServiceAnswer:
        given = {name: value for name, value in parameters.items() if value is not None}
        url = f"{self.address}{path}?{urlencode(given)}"
        headers = {"Accept": "application/json", **self.headers}
        async with http_client.guarded_client(self._reach(), seconds=_SECONDS, headers=headers) as http:
            http.follow_redirects = False
            answer = await http_client.fetch(http, url, max_bytes=_MAX_BYTES, seconds=_SECONDS)
        return ServiceAnswer(answer.status, _parse_json(answer.data, answer.status), _parse_seconds(answer.retry_after))

    def _reach(self) -> HostAccess:
        parts = urlsplit(self.address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return HostAccess(AllowedPrivateHosts(names=frozenset({f"{(parts.hostname or '').rstrip('.')}:{port}"})))


def _parse_json(data: bytes, status: int) -> JsonObject:
    try:
        body: object = json.loads(data)
        return cast("JsonObject", body) if isinstance(body, dict) else {}
    except (ValueError, RecursionError) as error:
        if status == 200:
            raise ProviderFailed("The search service did not answer with JSON.") from error
        return {}


def _parse_seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdecimal() and len(text) < 6 else None


MAX_WAIT_SECONDS = 15.0


class RequestSpacing:
    """Spaces requests at least `seconds` apart."""

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._seconds, self._clock, self._sleep = seconds, clock, sleep
        self._next = 0.0

    async def wait_for_turn(self) -> None:
        """Wait for the next slot; refuse at once if the wait would be too long."""
        now = self._clock()
        mine = max(now, self._next)
        if mine - now > MAX_WAIT_SECONDS:
            raise ProviderRateLimited(
                "Too many searches are waiting for their turn.", hint=f"Try again in {mine - now:.0f} seconds."
            )
        self._next = mine + self._seconds
        if mine > now:
            await self._sleep(mine - now)

    def pause(self, seconds: float) -> None:
        """Delay further requests, because the source asked for it."""
        self._next = max(self._next, self._clock() + seconds)


SET_KEY = "Set a valid one: annabelle config set BRAVE_API_KEY"


class BraveProvider:
    """Web, news and image search of Brave; one request per `spacing`, as the plan allows."""

    name = "Brave Search"
    knows_days = True

    def __init__(self, address: str, key: str, spacing: RequestSpacing) -> None:
        self._service = SearchService(address, {"X-Subscription-Token": key})
        self._spacing = spacing

    async def web(self, question: SearchRequest) -> list[PageHit]:
        answer = await self._ask("web", question, question.safesearch)
        return [_brave_hit(entry) for entry in get_objects(get_object(answer, "web"), "results")]

    async def news(self, question: SearchRequest) -> list[PageHit]:
        answer = await self._ask("news", question, question.safesearch)
        return [_brave_hit(entry) for entry in get_objects(answer, "results")]

    async def images(self, question: SearchRequest) -> list[ImageHit]:
        # Brave knows no moderate for images.
        answer = await self._ask("images", question, "off" if question.safesearch == "off" else "strict")
        return [
            ImageHit(
                title=entry.get("title"),
                image=get_object(entry, "properties").get("url"),
                page=entry.get("url"),
                thumbnail=get_object(entry, "thumbnail").get("src"),
                source=entry.get("source"),
                width=get_object(entry, "properties").get("width"),
                height=get_object(entry, "properties").get("height"),
            )
            for entry in get_objects(answer, "results")
        ]

    async def _ask(self, kind: str, question: SearchRequest, safesearch: str) -> JsonObject:
        await self._spacing.wait_for_turn()
        parameters = {
            "q": question.query,
            "count": question.count,
            "freshness": question.freshness.for_brave() if kind != "images" else None,
            "safesearch": safesearch,
            "text_decorations": "false" if kind == "web" else None,
            "result_filter": "web" if kind == "web" else None,
        }
        answer = await self._service.ask(f"/res/v1/{kind}/search", parameters)
        if answer.status != 200:
            raise self._trouble(answer)
        return answer.body

    def _trouble(self, answer: ServiceAnswer) -> Exception:
        code = get_object(answer.body, "error").get("code")
        if answer.status == 429:
            pause = answer.retry_after or 5.0
            self._spacing.pause(pause)
            return ProviderRateLimited(
                "Brave Search asks for fewer requests, or the plan is used up.",
                hint=f"Try again in {pause:.0f} seconds.",
            )
        if answer.status in (401, 403) or code == "SUBSCRIPTION_TOKEN_INVALID":
            return ProviderRefused("Brave Search does not accept the key.", hint=SET_KEY)
        if answer.status >= 500:
            return ProviderDown(f"Brave Search is out of order for now ({answer.status}).", hint="Try again later.")
        return ProviderFailed(f"Brave Search did not take the request ({answer.status}).", hint="Change the query.")


def _brave_hit(entry: JsonObject) -> PageHit:
    return PageHit(
        title=entry.get("title"),
        url=entry.get("url"),
        snippet=entry.get("description"),
        age=entry.get("age") or entry.get("page_age"),
        source=get_object(entry, "profile").get("name") or get_object(entry, "meta_url").get("hostname"),
    )


_SEARXNG_SAFETY = {"off": 0, "moderate": 1, "strict": 2}


class SearxngProvider:
    """Uses the JSON API, which the owner of an instance has to enable."""

    name = "SearXNG"
    knows_days = False

    def __init__(self, address: str) -> None:
        self._service = SearchService(*_without_credentials(address))

    async def web(self, question: SearchRequest) -> list[PageHit]:
        return [_searxng_hit(entry) for entry in await self._ask("general", question)]

    async def news(self, question: SearchRequest) -> list[PageHit]:
        return [_searxng_hit(entry) for entry in await self._ask("news", question)]

    async def images(self, question: SearchRequest) -> list[ImageHit]:
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

    async def _ask(self, category: str, question: SearchRequest) -> list[JsonObject]:
        parameters = {
            "q": question.query,
            "format": "json",
            "categories": category,
            "safesearch": _SEARXNG_SAFETY[question.safesearch],
            "time_range": question.freshness.shortest_span(),
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
        return get_objects(answer.body, "results")


def _without_credentials(address: str) -> tuple[str, dict[str, str]]:
    """An instance behind a password: `https://user:password@search.example` goes into a header, not into addresses."""
    parts = urlsplit(address)
    if parts.username is None:
        return address, {}
    words = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    host = parts.netloc.rpartition("@")[2]
    token = base64.b64encode(words.encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {token}"}


def _searxng_hit(entry: JsonObject) -> PageHit:
    return PageHit(
        title=entry.get("title"),
        url=entry.get("url"),
        snippet=entry.get("content"),
        age=entry.get("publishedDate"),
        source=entry.get("source") or entry.get("engine"),
    )
