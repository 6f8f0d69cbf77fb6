"""The tool that reads one page of the web."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import Field

from annabelle.core.errors import AnnabelleError, InvalidArguments, NotAllowed, NotFound, TooLarge, Unavailable
from annabelle.servers.kit import Result, current_call, deferred_module, in_thread, tool
from annabelle.servers.kit.net.addresses import Reach, printable_host
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.searcher.config import SearcherConfig
from annabelle.servers.searcher.kinds import Kind, ending_of, kind_of
from annabelle.servers.searcher.plain import one_line, visible
from annabelle.servers.searcher.reading.decoding import decode
from annabelle.servers.searcher.reading.desk import Document, ReadingDesk, Text
from annabelle.servers.searcher.robots import MAX_BYTES, Robots, RobotsFile

if TYPE_CHECKING:
    import httpx2

    from annabelle.servers.kit.net import client, fetching
else:
    client = deferred_module("annabelle.servers.kit.net.client")
    fetching = deferred_module("annabelle.servers.kit.net.fetching")

MAX_LENGTH = 20_000
_ROBOTS_SECONDS = 5.0
_MORE = 1_000_000
_ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5"


class PageRead(Result):
    """What a page says, as far as it was asked for."""

    url: str
    final_url: str
    status: int
    content_type: str
    title: str
    content: str
    total_chars: int
    rest: str | None = Field(default=None, description="Workspace path of the whole text, if only a part is shown")
    note: str | None = None

    def text(self) -> str:
        head = [f"# {self.title}" if self.title else "", f"<{self.final_url}>"]
        more = f"The whole text ({self.total_chars} characters) is in {self.rest}." if self.rest else ""
        cut = f"{len(self.content)} of {self.total_chars} characters are shown." if not more else ""
        shown = more or (cut if len(self.content) < self.total_chars else "")
        tail = " ".join(filter(None, (self.note, shown)))
        return "\n\n".join(filter(None, (*head, self.content, f"[{tail}]" if tail else "")))


class Fetching:
    """web_fetch."""

    def __init__(self, config: SearcherConfig, overflow: Overflow, reach: Reach) -> None:
        self._config, self._overflow, self._reach = config, overflow, reach
        self._desk = ReadingDesk()
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
    ) -> PageRead:
        """Read one page or document of the web as Markdown: HTML without menus and scripts, PDF, text, JSON. Pages that
        need scripts or a login need the browser tools."""
        address = _address(url)
        end = asyncio.get_running_loop().time() + timeout / 1000
        answer = await self._fetched(address, timeout / 1000)
        _refuse_failure(answer)
        left = max(1.0, end - asyncio.get_running_loop().time())
        await current_call().progress(1, 2, f"{len(answer.data)} bytes fetched")
        kind = kind_of(answer.content_type, answer.data)
        text = await self._read(kind, answer, left, links=includeLinks)
        # A call that leaves the length out means the user's own default, which the schema can not show.
        limit = self._config.max_length if maxLength == MAX_LENGTH else maxLength
        content = await in_thread(lambda stop: visible(text.content))
        shown = await self._overflow.show(content, limit, f"page.{ending_of(kind, answer.content_type)}")
        return PageRead(
            url=address,
            final_url=answer.url,
            status=answer.status,
            content_type=one_line(answer.content_type, 80),
            title=one_line(text.title, 300),
            content=shown.text,
            total_chars=shown.total_chars,
            rest=shown.rest,
            note=text.note,
        )

    async def close(self) -> None:
        await self._desk.close()

    async def _fetched(self, url: str, seconds: float) -> fetching.Fetched:
        async def ask_robots(request: httpx2.Request) -> None:
            if request.url.scheme in ("http", "https") and not request.url.userinfo:
                await self._robots.check(str(request.url))

        limit = self._config.max_bytes
        headers = {"Accept": _ACCEPT}
        # More than is read: a longer answer is cut, not refused.
        async with client.guarded_client(
            self._reach, seconds=seconds, headers=headers, max_bytes=limit + _MORE
        ) as http:
            if self._config.robots:
                http.event_hooks = {"request": [ask_robots]}  # before each redirect, too
            return await fetching.fetch(http, url, max_bytes=limit, seconds=seconds)

    async def _load_robots(self, url: str) -> RobotsFile:
        async with client.guarded_client(self._reach, seconds=_ROBOTS_SECONDS) as http:
            answer = await fetching.fetch(http, url, max_bytes=MAX_BYTES, seconds=_ROBOTS_SECONDS)
        return RobotsFile(answer.status, answer.data)

    async def _read(self, kind: Kind, answer: fetching.Fetched, seconds: float, *, links: bool) -> Text:
        if kind == "pdf":
            if answer.truncated:
                raise TooLarge(
                    f"The PDF has more than {self._config.max_bytes} bytes, which is more than is read.",
                    hint="Raise the limit: annabelle config set WEB_FETCH_MAX_BYTES",
                )
            return await self._desk.read(Document("pdf", answer.data, answer.url), seconds)
        cut = "Only its beginning was fetched." if answer.truncated else None
        if kind == "html":
            page = Document("html", answer.data, answer.url, answer.charset, links)
            text = await self._desk.read(page, seconds)
            empty = (
                None if text.content else "The page shows no text without its scripts; the browser tools can open it."
            )
            return Text(text.title, text.content, " ".join(filter(None, (text.note or cut, empty))) or None)
        if kind == "text":
            content = await in_thread(
                lambda stop: decode(answer.data, answer.charset, declared="xml" in answer.content_type)
            )
            return Text("", content, cut)
        size = f"{'more than ' if answer.truncated else ''}{len(answer.data):,} bytes"
        return Text("", "", f"This is {one_line(answer.content_type, 80) or 'data'} of {size}: it has no text to show.")


def _address(url: str) -> str:
    address = url.strip()
    if not address.isprintable():
        raise InvalidArguments("The address has characters in it that no address has.", field="url")
    if not address.lower().startswith(("http://", "https://")):
        if "://" in address or address.lower().startswith(("javascript:", "data:", "file:", "about:", "mailto:")):
            raise InvalidArguments("Only http and https addresses are opened.", field="url")
        address = f"https://{address}"
    return address


def _refuse_failure(answer: fetching.Fetched) -> None:
    if answer.status >= 400:
        raise _failure(answer.status, printable_host(urlsplit(answer.url).hostname or ""))


def _failure(status: int, host: str) -> AnnabelleError:
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
