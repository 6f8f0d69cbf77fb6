"""The tool that reads one web page or document."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from annabelle.core.errors import AnnabelleError, InvalidArguments, NotAllowed, NotFound, TooLarge, Unavailable
from annabelle.servers.kit import Result, current_call, deferred_module, in_thread, tool
from annabelle.servers.kit.charset import decode_text
from annabelle.servers.kit.host_access import HostAccess, printable_host
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.searcher.config import SearcherConfig
from annabelle.servers.searcher.plain_text import one_line, remove_invisible
from annabelle.servers.searcher.reader_pool import ExtractedText, FetchedDocument, ReaderPool
from annabelle.servers.searcher.robots import MAX_BYTES, Robots, RobotsFile

if TYPE_CHECKING:
    import httpx2

    from annabelle.servers.kit import http_client
else:
    http_client = deferred_module("annabelle.servers.kit.http_client")


Kind = Literal["html", "pdf", "text", "other"]

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = (
    "application/json",
    "application/ld+json",
    "application/xml",
    "application/javascript",
    "application/x-ndjson",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/sql",
    "application/rtf",
)
_SAYS_NOTHING = ("", "application/octet-stream", "binary/octet-stream", "application/force-download", "text/plain")
_HTML_BEGINS = (b"<!doctype html", b"<html", b"<head", b"<body")


def kind_of(content_type: str, data: bytes) -> Kind:
    if content_type in _HTML:
        return "html"
    if content_type == "application/pdf" or (content_type in _SAYS_NOTHING and data.startswith(b"%PDF-")):
        return "pdf"
    begins = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if content_type in _SAYS_NOTHING[:-1] and begins.startswith(_HTML_BEGINS):
        return "html"
    if content_type in _SAYS_NOTHING:
        wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        return "other" if b"\x00" in data[:4000] and not wide else "text"
    if content_type.startswith("text/") or content_type in _TEXT or content_type.endswith(("+json", "+xml")):
        return "text"
    return "other"


def ending_of(kind: Kind, content_type: str) -> str:
    """The suffix of the file that keeps the text."""
    if kind != "text":
        return "md"
    for word in ("json", "xml", "csv", "yaml"):
        if word in content_type:
            return word
    return "txt"


MAX_LENGTH = 20_000
_ROBOTS_SECONDS = 5.0
_MORE = 1_000_000
_ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5"


class FetchedPage(Result):
    """What a page says, as far as it was asked for."""

    url: str
    final_url: str
    status: int
    content_type: str
    title: str
    description: str = Field(default="", description="What the page tells search engines about itself")
    content: str
    total_chars: int
    rest: str | None = Field(default=None, description="Workspace path of the whole text, if only a part is shown")
    note: str | None = None

    def to_text(self) -> str:
        head = [f"# {self.title}" if self.title else "", f"<{self.final_url}>"]
        more = f"The whole text ({self.total_chars} characters) is in {self.rest}." if self.rest else ""
        cut = f"{len(self.content)} of {self.total_chars} characters are shown." if not more else ""
        shown = more or (cut if len(self.content) < self.total_chars else "")
        tail = " ".join(filter(None, (self.note, shown)))
        return "\n\n".join(filter(None, (*head, self.content, f"[{tail}]" if tail else "")))


class FetchTool:
    """web_fetch."""

    def __init__(self, config: SearcherConfig, overflow: Overflow, reach: HostAccess) -> None:
        self._config, self._overflow, self._reach = config, overflow, reach
        self._readers = ReaderPool()
        self._robots = Robots(self._load_robots)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def web_fetch(
        self,
        url: Annotated[str, Field(min_length=1, max_length=4000, description="Address of the page: https://…")],
        maxLength: Annotated[
            int, Field(ge=1000, le=100_000, description="How many characters to show; the whole is kept as a file")
        ] = MAX_LENGTH,
        includeLinks: Annotated[bool, Field(description="Keep the addresses of links in the text")] = True,
        timeout: Annotated[int, Field(ge=1000, le=30_000, description="Milliseconds it may take in all")] = 10_000,
    ) -> FetchedPage:
        """Read one page or document of the web as Markdown: HTML without menus and scripts, PDF, text, JSON. Pages that
        need scripts or a login need the browser tools."""
        address = _check_address(url)
        end = asyncio.get_running_loop().time() + timeout / 1000
        answer = await self._fetch(address, timeout / 1000)
        _refuse_failure(answer)
        left = max(1.0, end - asyncio.get_running_loop().time())
        await current_call().progress(1, 2, f"{len(answer.data)} bytes fetched")
        kind = kind_of(answer.content_type, answer.data)
        text = await self._read(kind, answer, left, links=includeLinks)
        # Without a length, the default in the user's settings applies, which the schema cannot show.
        limit = self._config.max_length if maxLength == MAX_LENGTH else maxLength
        content = await in_thread(lambda stop: remove_invisible(text.content))
        shown = await self._overflow.show_text(content, limit, f"page.{ending_of(kind, answer.content_type)}")
        return FetchedPage(
            url=address,
            final_url=answer.url,
            status=answer.status,
            content_type=one_line(answer.content_type, 80),
            title=one_line(text.title, 300),
            description=one_line(text.description, 500),
            content=shown.text,
            total_chars=shown.total_chars,
            rest=shown.rest,
            note=text.note,
        )

    async def close(self) -> None:
        await self._readers.close()

    async def _fetch(self, url: str, seconds: float) -> http_client.FetchedResponse:
        async def ask_robots(request: httpx2.Request) -> None:
            if request.url.scheme in ("http", "https") and not request.url.userinfo:
                await self._robots.check(str(request.url))

        limit = self._config.max_bytes
        headers = {"Accept": _ACCEPT}
        # More than is read: a longer answer is cut, not refused.
        async with http_client.guarded_client(
            self._reach, seconds=seconds, headers=headers, max_bytes=limit + _MORE
        ) as http:
            if self._config.robots:
                http.event_hooks = {"request": [ask_robots]}  # before each redirect, too
            return await http_client.fetch(http, url, max_bytes=limit, seconds=seconds)

    async def _load_robots(self, url: str) -> RobotsFile:
        async with http_client.guarded_client(self._reach, seconds=_ROBOTS_SECONDS) as http:
            answer = await http_client.fetch(http, url, max_bytes=MAX_BYTES, seconds=_ROBOTS_SECONDS)
        return RobotsFile(answer.status, answer.data)

    async def _read(
        self, kind: Kind, answer: http_client.FetchedResponse, seconds: float, *, links: bool
    ) -> ExtractedText:
        if kind == "pdf":
            if answer.truncated:
                raise TooLarge(
                    f"The PDF has more than {self._config.max_bytes} bytes, which is more than is read.",
                    hint="Raise the limit: annabelle config set WEB_FETCH_MAX_BYTES",
                )
            return await self._readers.read(FetchedDocument("pdf", answer.data, answer.url), seconds)
        cut = "Only its beginning was fetched." if answer.truncated else None
        if kind == "html":
            page = FetchedDocument("html", answer.data, answer.url, answer.charset, links)
            text = await self._readers.read(page, seconds)
            empty = (
                None if text.content else "The page shows no text without its scripts; the browser tools can open it."
            )
            note = " ".join(filter(None, (text.note or cut, empty))) or None
            return replace(text, note=note)
        if kind == "text":
            content = await in_thread(
                lambda stop: decode_text(answer.data, answer.charset, declared="xml" in answer.content_type)
            )
            return ExtractedText("", content, cut)
        size = f"{'more than ' if answer.truncated else ''}{len(answer.data):,} bytes"
        return ExtractedText(
            "", "", f"This is {one_line(answer.content_type, 80) or 'data'} of {size}: it has no text to show."
        )


def _check_address(url: str) -> str:
    address = url.strip()
    if not address.isprintable():
        raise InvalidArguments("The address has characters in it that no address has.", field="url")
    if not address.lower().startswith(("http://", "https://")):
        if "://" in address or address.lower().startswith(("javascript:", "data:", "file:", "about:", "mailto:")):
            raise InvalidArguments("Only http and https addresses are opened.", field="url")
        address = f"https://{address}"
    return address


def _refuse_failure(answer: http_client.FetchedResponse) -> None:
    if answer.status >= 400:
        raise _status_error(answer.status, printable_host(urlsplit(answer.url).hostname or ""))


def _status_error(status: int, host: str) -> AnnabelleError:
    if status in (404, 410):
        return NotFound(f"{host} has no such page ({status}).", hint="Check the address, or search for the page.")
    if status in (401, 402, 403, 407, 451):
        return NotAllowed(
            f"{host} does not show this page to programs ({status}).",
            hint="It may need a login: try the browser tools, or another source.",
        )
    if status == 429:
        return Unavailable(f"{host} asks for fewer requests (429).", hint="Try again in a minute, or another source.")
    if status >= 500:
        return Unavailable(f"{host} is out of order for now ({status}).", hint="Try again later, or another source.")
    return Unavailable(f"{host} did not take the request ({status}).", hint="Check the address.")
