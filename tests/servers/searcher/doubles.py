"""Search services on loopback that check what they are asked, as the real ones do, and keep count."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from servers.searcher.local_web import Asked, LocalWeb, Reply, read_request, speak

KEY = "brave-key-for-tests-only"
_FRESHNESS = re.compile(r"p[dwmy]|\d{4}-\d\d-\d\dto\d{4}-\d\d-\d\d")


def as_json(value: object, status: int = 200, *headers: tuple[str, str]) -> Reply:
    return Reply(json.dumps(value).encode(), status, "application/json", headers)


@dataclass(slots=True)
class BraveDouble:
    """Knows one key, a quota, and the parameters each endpoint takes."""

    web: LocalWeb
    quota: int = 1000
    results: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in ("web", "news", "images"):
            self.web.pages[f"/res/v1/{kind}/search"] = self._answer

    async def _answer(self, asked: Asked) -> Reply:
        kind = asked.path.split("/")[3]
        if asked.headers.get("x-subscription-token") != KEY:
            return as_json({"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}, 422)
        if self.quota <= 0:
            return as_json({"type": "ErrorResponse", "error": {"code": "RATE_LIMITED"}}, 429, ("Retry-After", "7"))
        self.quota -= 1
        problem = _brave_problem(kind, asked.query)
        if problem:
            return as_json({"type": "ErrorResponse", "error": {"code": "VALIDATION", "detail": problem}}, 422)
        found = self.results.get(kind, [])[: int(asked.query["count"])]
        return as_json({"web": {"results": found}} if kind == "web" else {"results": found})


def _brave_problem(kind: str, query: dict[str, str]) -> str | None:
    most = {"web": 20, "news": 50, "images": 200}[kind]
    safety = {"off", "strict"} if kind == "images" else {"off", "moderate", "strict"}
    known = {"q", "count", "safesearch", "freshness", "text_decorations", "result_filter"}
    if kind == "images":
        known -= {"freshness", "text_decorations", "result_filter"}
    if not query.keys() <= known:
        return f"unknown parameters {query.keys() - known}"
    if not 1 <= len(query["q"]) <= 400 or not 1 <= int(query["count"]) <= most or query["safesearch"] not in safety:
        return "out of range"
    if "freshness" in query and not _FRESHNESS.fullmatch(query["freshness"]):
        return "freshness"
    return None


@dataclass(slots=True)
class SearXNGDouble:
    """An instance whose owner may not have switched its JSON on."""

    web: LocalWeb
    json_on: bool = True
    results: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.web.pages["/search"] = self._answer

    async def _answer(self, asked: Asked) -> Reply:
        query = asked.query
        if query.get("format") != "json" or not self.json_on:
            return Reply(b"Forbidden", 403)
        if query.get("safesearch", "0") not in "012" or query.get("time_range", "day") not in (
            "day",
            "week",
            "month",
            "year",
        ):
            return Reply(b"Bad request", 400)
        return as_json({"query": query["q"], "results": self.results.get(query["categories"], [])})


@dataclass(slots=True)
class EnginesDouble:
    """A proxy that is every public search engine at once; only the DuckDuckGo ones have something to say."""

    port: int = 0
    asked: list[tuple[str, Asked]] = field(default_factory=list)
    down: bool = False
    news: list[dict[str, object]] = field(default_factory=list)
    images: list[dict[str, object]] = field(default_factory=list)
    text: str = "<html><body></body></html>"

    def hosts(self) -> set[str]:
        return {host for host, _ in self.asked}

    async def answer(self, host: str, asked: Asked) -> Reply:
        self.asked.append((host, asked))
        if self.down:
            return Reply(b"overloaded", 503)
        if host == "html.duckduckgo.com":
            return Reply(self.text.encode())
        if host == "duckduckgo.com":
            if asked.path == "/":
                return Reply(b'<script>vqd="4-123456789"</script>')
            if asked.query.get("vqd") != "4-123456789":
                return Reply(b"no token", 403)
            return as_json({"results": self.news if asked.path == "/news.js" else self.images})
        return Reply(b"not here", 503)


@asynccontextmanager
async def engines(tls: ssl.SSLContext) -> AsyncGenerator[EnginesDouble]:
    double = EnginesDouble()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            tunnel = await read_request(reader, "")
            host = tunnel.target.rpartition(":")[0]
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
            await writer.start_tls(tls)
            await speak(lambda asked: double.answer(host, asked), reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    double.port = server.sockets[0].getsockname()[1]
    try:
        yield double
    finally:
        server.close()
