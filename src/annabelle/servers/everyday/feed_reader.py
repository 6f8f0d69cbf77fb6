"""Fetches a feed and reads its entries; a feed that has not changed since the last time is not sent again."""

from __future__ import annotations

import calendar
import hashlib
import io
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import struct_time
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast
from urllib.parse import urljoin, urlsplit
from xml.parsers import expat

from annabelle.core.errors import InvalidArguments, NotFound, TooLarge, Unavailable
from annabelle.core.html_text import html_to_text
from annabelle.servers.kit import deferred_module, in_thread
from annabelle.servers.kit.host_access import AllowedPrivateHosts, HostAccess
from annabelle.servers.kit.json_access import get_text

if TYPE_CHECKING:
    from annabelle.servers.kit import http_client
else:
    http_client = deferred_module("annabelle.servers.kit.http_client")


_MAX_MARKUP = 200_000
_LINK_TAG = re.compile(r"</?a\b[^<>]*>", re.IGNORECASE)


def html_to_words(markup: str, limit: int) -> str:
    """The visible words of HTML without blank lines and control characters, cut at a limit."""
    # Without the tags of links their addresses are not shown. The last tag makes everything before it HTML.
    words = html_to_text(f"{_LINK_TAG.sub('', markup[:_MAX_MARKUP])}<br>")
    text = "".join(char for char in words if char == "\n" or unicodedata.category(char)[0] != "C")
    whole = "\n".join(line for line in text.split("\n") if line)
    return whole if len(whole) <= limit else f"{whole[: limit - 1]}…"


class _FeedParser(Protocol):
    """The part of feedparser that is used; the library has no types."""

    def parse(self, stream: BinaryIO, *, sanitize_html: bool, resolve_relative_uris: bool) -> Mapping[str, object]: ...


feedparser = cast("_FeedParser", deferred_module("feedparser"))

MAX_BYTES = 5_000_000
MAX_ENTRIES = 500
_SECONDS = 20.0
_MAX_BROKEN = 300_000
_MAX_DECLARATIONS = 300
_KEPT = 32
_ACCEPT = "application/rss+xml, application/atom+xml, application/feed+json;q=0.5, application/xml;q=0.9, */*;q=0.1"


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry, as plain words."""

    id: str
    title: str
    link: str | None
    published: datetime | None
    summary: str
    author: str | None


@dataclass(frozen=True, slots=True)
class ReadFeed:
    """A feed as it is now, in its own order."""

    title: str
    entries: tuple[FeedEntry, ...]


@dataclass(frozen=True, slots=True)
class _CachedFeed:
    validators: dict[str, str]
    feed: ReadFeed


class FeedReader:
    """Reads feeds from the internet and from the private hosts the user allowed."""

    def __init__(self, private_hosts: str) -> None:
        self._reach = HostAccess(AllowedPrivateHosts.parse(private_hosts))
        self._kept: dict[str, _CachedFeed] = {}

    async def read(self, url: str) -> ReadFeed:
        """The feed at an address; the cached one if the server answers "not modified"."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidArguments("A feed's address begins with http:// or https://.", field="url")
        kept = self._kept.get(url)
        answer = await self._fetch(url, kept.validators if kept else {})
        if answer.status == 304 and kept is not None:
            return kept.feed
        if answer.status in (404, 410):
            raise NotFound(f"There is no feed at {parts.hostname} (status {answer.status}).", field="url")
        if answer.status != 200:
            raise Unavailable(f"{parts.hostname} answered with status {answer.status}.", hint="Try again in a while.")
        if answer.truncated:
            raise TooLarge(f"The feed has more than {MAX_BYTES} bytes.", field="url")
        feed = await in_thread(lambda stop: _parse_feed(answer.data, url))
        said = {"If-None-Match": answer.etag, "If-Modified-Since": answer.last_modified}
        self._kept[url] = _CachedFeed({ask: value for ask, value in said.items() if value is not None}, feed)
        while len(self._kept) > _KEPT:
            self._kept.pop(next(iter(self._kept)))
        return feed

    async def _fetch(self, url: str, validators: dict[str, str]) -> http_client.FetchedResponse:
        headers = {"Accept": _ACCEPT, **validators}
        async with http_client.guarded_client(self._reach, seconds=_SECONDS, headers=headers) as http:
            return await http_client.fetch(http, url, max_bytes=MAX_BYTES, seconds=_SECONDS)


def _parse_feed(data: bytes, url: str) -> ReadFeed:
    if b"<!ENTITY" in data[:100_000]:
        raise InvalidArguments("The feed defines entities of its own, which is not read.", field="url")
    if not _is_cheap_to_parse(data):
        raise InvalidArguments("The feed is not well-formed XML.", hint="Its publisher has to mend it.", field="url")
    # As a stream: the library takes bytes for a file name first. Its HTML sanitizer takes minutes for some
    # markup, and is not needed: only words are kept.
    parsed = feedparser.parse(io.BytesIO(data), sanitize_html=False, resolve_relative_uris=False)
    if not parsed.get("version"):
        raise InvalidArguments(
            "There is no RSS or Atom feed at this address.",
            hint="Look on the page for a link called RSS or Feed.",
            field="url",
        )
    about = cast("Mapping[str, object]", parsed.get("feed") or {})
    entries = cast("list[Mapping[str, object]]", parsed.get("entries") or [])[:MAX_ENTRIES]
    title = html_to_words(get_text(about, "title"), 200) or str(urlsplit(url).hostname)
    return ReadFeed(title, tuple(_parse_entry(entry, url) for entry in entries))


def _is_cheap_to_parse(data: bytes) -> bool:
    """Whether feedparser reads it in linear time: well-formed XML, or something small. For broken XML it has a second
    parser, which some input keeps busy for hours."""
    try:
        expat.ParserCreate(namespace_separator=" ").Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError):
        return len(data) <= _MAX_BROKEN and data.count(b"<!") <= _MAX_DECLARATIONS
    return True


def _parse_entry(entry: Mapping[str, object], url: str) -> FeedEntry:
    link = urljoin(url, get_text(entry, "link").strip())[:2000]
    title = html_to_words(get_text(entry, "title"), 300)
    summary = html_to_words(get_text(entry, "summary"), 1000)
    named = get_text(entry, "id") or get_text(entry, "link") or f"{title}\n{summary}"
    return FeedEntry(
        # A feed's own id may be of any length, so its digest is used.
        id=hashlib.sha256(named.encode(errors="replace")).hexdigest()[:16],
        title=title or "(no title)",
        link=link if get_text(entry, "link") and urlsplit(link).scheme in ("http", "https") else None,
        published=_get_time(entry.get("published_parsed") or entry.get("updated_parsed")),
        summary=summary,
        author=html_to_words(get_text(entry, "author"), 100) or None,
    )


def _get_time(value: object) -> datetime | None:
    if not isinstance(value, struct_time):
        return None
    try:
        return datetime.fromtimestamp(calendar.timegm(value), UTC)
    except (OverflowError, ValueError, OSError):
        return None
