"""Fetches a feed and reads its entries; a feed that has not changed since the last time is not sent again."""

from __future__ import annotations

import calendar
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import struct_time
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast
from urllib.parse import urljoin, urlsplit
from xml.parsers import expat

from annabelle.core.errors import InvalidArguments, NotFound, TooLarge, Unavailable
from annabelle.servers.everyday.plain_text import plain
from annabelle.servers.kit import deferred_module, in_thread
from annabelle.servers.kit.net.addresses import Exceptions, Reach

if TYPE_CHECKING:
    from annabelle.servers.kit.net import client, fetching
else:
    client = deferred_module("annabelle.servers.kit.net.client")
    fetching = deferred_module("annabelle.servers.kit.net.fetching")


class _Parser(Protocol):
    """What is used of the library; its own code has no types."""

    def parse(self, stream: BinaryIO, *, sanitize_html: bool, resolve_relative_uris: bool) -> Mapping[str, object]: ...


feedparser = cast("_Parser", deferred_module("feedparser"))

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
class _Kept:
    validators: dict[str, str]
    feed: ReadFeed


class FeedReader:
    """Reads feeds from the open internet, and from those hosts of the user's own that were allowed."""

    def __init__(self, private_hosts: str) -> None:
        self._reach = Reach(Exceptions.parse(private_hosts))
        self._kept: dict[str, _Kept] = {}

    async def read(self, url: str) -> ReadFeed:
        """The feed behind an address. An answer "not modified" gives the one that was read before."""
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
        feed = await in_thread(lambda stop: _parse(answer.data, url))
        said = {"If-None-Match": answer.etag, "If-Modified-Since": answer.last_modified}
        self._kept[url] = _Kept({ask: value for ask, value in said.items() if value is not None}, feed)
        while len(self._kept) > _KEPT:
            self._kept.pop(next(iter(self._kept)))
        return feed

    async def _fetch(self, url: str, validators: dict[str, str]) -> fetching.Fetched:
        headers = {"Accept": _ACCEPT, **validators}
        async with client.guarded_client(self._reach, seconds=_SECONDS, headers=headers) as http:
            return await fetching.fetch(http, url, max_bytes=MAX_BYTES, seconds=_SECONDS)


def _parse(data: bytes, url: str) -> ReadFeed:
    if b"<!ENTITY" in data[:100_000]:
        raise InvalidArguments("The feed defines entities of its own, which is not read.", field="url")
    if not _tame(data):
        raise InvalidArguments("The feed is not well-formed XML.", hint="Its publisher has to mend it.", field="url")
    # As a stream: the library would take bytes for a file's name first. Its cleaning of HTML takes minutes for some
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
    title = plain(_text(about, "title"), 200) or str(urlsplit(url).hostname)
    return ReadFeed(title, tuple(_entry(entry, url) for entry in entries))


def _tame(data: bytes) -> bool:
    """Whether the library reads it in a time that grows with its size: well-formed XML, or something small. For what
    is broken it has a second parser, which some input keeps busy for hours."""
    try:
        expat.ParserCreate(namespace_separator=" ").Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError):
        return len(data) <= _MAX_BROKEN and data.count(b"<!") <= _MAX_DECLARATIONS
    return True


def _entry(entry: Mapping[str, object], url: str) -> FeedEntry:
    link = urljoin(url, _text(entry, "link").strip())[:2000]
    title = plain(_text(entry, "title"), 300)
    summary = plain(_text(entry, "summary"), 1000)
    named = _text(entry, "id") or _text(entry, "link") or f"{title}\n{summary}"
    return FeedEntry(
        # A stranger's id may be of any length; its digest names the entry as well.
        id=hashlib.sha256(named.encode(errors="replace")).hexdigest()[:16],
        title=title or "(no title)",
        link=link if _text(entry, "link") and urlsplit(link).scheme in ("http", "https") else None,
        published=_time(entry.get("published_parsed") or entry.get("updated_parsed")),
        summary=summary,
        author=plain(_text(entry, "author"), 100) or None,
    )


def _text(entry: Mapping[str, object], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _time(value: object) -> datetime | None:
    if not isinstance(value, struct_time):
        return None
    try:
        return datetime.fromtimestamp(calendar.timegm(value), UTC)
    except (OverflowError, ValueError, OSError):
        return None
