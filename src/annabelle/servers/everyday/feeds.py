"""Tools that read and follow feeds, and the file of followed feeds."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.errors import AnnabelleError, Conflict, NotFound, StorageTrouble, TooLarge
from annabelle.core.home import write_atomically
from annabelle.servers.everyday.feed_reader import FeedEntry, FeedReader, ReadFeed
from annabelle.servers.kit import Result, current_call, in_thread, tool


class FeedNewsEntry(Result):
    """One entry of a feed."""

    model_config = ConfigDict(from_attributes=True)

    title: str
    link: str | None = None
    published: datetime | None = None
    summary: str = ""
    author: str | None = None
    feed: str | None = Field(default=None, description="The name it is followed by")

    def to_lines(self) -> str:
        when = f" ({self.published:%Y-%m-%d %H:%M})" if self.published else ""
        head = f"- {f'[{self.feed}] ' if self.feed else ''}{self.title}{when}"
        return "\n".join(
            filter(None, (head, self.link and f"  {self.link}", self.summary and f"  {self.summary[:300]}"))
        )


class FeedContent(Result):
    """What a feed has, the newest first."""

    title: str
    entries: list[FeedNewsEntry]
    more: int = Field(default=0, description="Entries beyond the limit")

    def to_text(self) -> str:
        lines = [entry.to_lines() for entry in self.entries] or ["No entries."]
        return "\n".join([self.title, *lines, *([f"[{self.more} more]"] if self.more else [])])


class FeedFollowResult(Result):
    """What became of a feed."""

    name: str
    url: str
    message: str

    def to_text(self) -> str:
        return self.message


class FeedLine(Result):
    name: str
    url: str
    since: datetime


class FeedList(Result):
    """The feeds that are followed."""

    feeds: list[FeedLine]

    def to_text(self) -> str:
        return "\n".join(f"{feed.name}: {feed.url}" for feed in self.feeds) or "No feed is followed."


class FeedNews(Result):
    """New entries of all feeds that are followed, the newest first."""

    entries: list[FeedNewsEntry]
    more: int = Field(default=0, description="New entries beyond the limit; they come with the next call")
    failed: dict[str, str] = Field(default_factory=dict, description="Feeds that could not be read, and why")

    def to_text(self) -> str:
        lines = [entry.to_lines() for entry in self.entries] or ["Nothing new."]
        more = [f"[{self.more} more; ask again]"] if self.more else []
        return "\n".join([*lines, *more, *(f"{name}: {why}" for name, why in self.failed.items())])


_log = logging.getLogger(__name__)
T = TypeVar("T")

MAX_FEEDS = 200
_MAX_SEEN = 2000


class FollowedFeed(BaseModel):
    """One feed somebody follows."""

    name: str
    url: str
    since: datetime
    seen: list[str] = []

    def mark(self, ids: list[str]) -> None:
        """Record entries as shown, the newest last; the oldest are dropped above a limit."""
        fresh = set(ids)
        self.seen = [*(old for old in self.seen if old not in fresh), *ids][-_MAX_SEEN:]


class FeedFile(BaseModel):
    """Feeds by user."""

    people: dict[str, list[FollowedFeed]] = {}


class FeedStore:
    """The file of followed feeds, changed by one call at a time."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "feeds.json"
        self._lock = asyncio.Lock()

    async def list_feeds(self, person: str) -> list[FollowedFeed]:
        async with self._lock:
            return (await in_thread(lambda stop: self._read())).people.get(person, [])

    async def change(self, person: str, work: Callable[[list[FollowedFeed]], T]) -> T:
        """Let `work` change a user's feeds. If it raises, the file stays unchanged."""

        def change_file() -> T:
            shelf = self._read()
            feeds = shelf.people.setdefault(person, [])
            before = shelf.model_dump_json()
            result = work(feeds)
            if not feeds:
                del shelf.people[person]
            if (after := shelf.model_dump_json()) != before:
                self._write(after)
            return result

        async with self._lock:
            return await in_thread(lambda stop: change_file())

    def _read(self) -> FeedFile:
        try:
            return FeedFile.model_validate(cast("object", json.loads(self._file.read_bytes())))
        except FileNotFoundError:
            return FeedFile()
        except OSError as error:
            raise StorageTrouble(f"The list of feeds can not be read: {error.strerror}.") from error
        except (ValueError, ValidationError):
            # Kept under another name, so that the user can inspect it.
            broken = self._file.with_suffix(".broken.json")
            _log.warning("The list of feeds was not readable and is kept as %s", broken.name)
            self._file.replace(broken)
            return FeedFile()

    def _write(self, text: str) -> None:
        try:
            write_atomically(self._file, text)
        except OSError as error:
            raise StorageTrouble(f"The list of feeds can not be written: {error.strerror}.") from error


_AT_ONCE = 5
_ALL_SECONDS = 40.0
"""For all feeds together: less than the limit of a call, so that what was read is still returned."""

Url = Annotated[str, Field(min_length=8, max_length=2000, description="Address of the RSS or Atom feed")]
Limit = Annotated[int, Field(ge=1, le=100, description="How many entries at most")]


class FeedTools:
    """read_feed, follow_feed, unfollow_feed, list_feeds and get_feed_news."""

    def __init__(self, reader: FeedReader, shelf: FeedStore, clock: Callable[[], datetime]) -> None:
        self._reader, self._store, self._clock = reader, shelf, clock

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def read_feed(
        self,
        url: Url,
        limit: Limit = 20,
        since: Annotated[datetime | None, Field(description="Only entries published after this time")] = None,
    ) -> FeedContent:
        """Read an RSS or Atom feed: titles, links, times and summaries, the newest first."""
        feed = await self._reader.read(url)
        start = None if since is None else since if since.tzinfo else since.replace(tzinfo=UTC)
        entries = [
            entry
            for entry in _sort_newest_first(feed)
            if start is None or (entry.published is not None and entry.published > start)
        ]
        shown = [_to_entry(entry) for entry in entries[:limit]]
        return FeedContent(title=feed.title, entries=shown, more=max(0, len(entries) - limit))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def follow_feed(
        self,
        url: Url,
        name: Annotated[str, Field(max_length=80, description="What to call it; its own title if left out")] = "",
    ) -> FeedFollowResult:
        """Follow a feed: from now on get_feed_news tells what is new in it. What it has already counts as told; use
        read_feed for that."""
        feed = await self._reader.read(url)
        called = " ".join(name.split()) or feed.title[:80]

        def add(feeds: list[FollowedFeed]) -> FeedFollowResult:
            same = next((known for known in feeds if known.url == url), None)
            if same is not None:
                return FeedFollowResult(name=same.name, url=url, message=f"{same.name} is followed already.")
            if any(known.name.casefold() == called.casefold() for known in feeds):
                raise Conflict(f"Another feed is called {called!r}.", hint="Give it another name.", field="name")
            if len(feeds) >= MAX_FEEDS:
                raise TooLarge(f"{MAX_FEEDS} feeds are followed already.", hint="unfollow_feed makes room.")
            feeds.append(
                FollowedFeed(name=called, url=url, since=self._clock(), seen=[entry.id for entry in feed.entries])
            )
            message = f"{called} is followed from now on. It has {len(feed.entries)} entries; read_feed shows them."
            return FeedFollowResult(name=called, url=url, message=message)

        return await self._store.change(_current_person(), add)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=False)
    async def unfollow_feed(
        self, name: Annotated[str, Field(min_length=1, max_length=2000, description="Its name or address")]
    ) -> FeedFollowResult:
        """Stop following a feed. What was told of it already is forgotten."""

        def remove(feeds: list[FollowedFeed]) -> FeedFollowResult:
            for feed in feeds:
                if name.strip().casefold() in (feed.name.casefold(), feed.url.casefold()):
                    feeds.remove(feed)
                    return FeedFollowResult(name=feed.name, url=feed.url, message=f"{feed.name} is no longer followed.")
            known = ", ".join(feed.name for feed in feeds[:20])
            hint = f"Followed are: {known}." if known else "No feed is followed."
            raise NotFound(f"No feed called {name[:80]!r} is followed.", hint=hint, field="name")

        return await self._store.change(_current_person(), remove)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_feeds(self) -> FeedList:
        """List the feeds that are followed."""
        feeds = await self._store.list_feeds(_current_person())
        return FeedList(feeds=[FeedLine(name=feed.name, url=feed.url, since=feed.since) for feed in feeds])

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def get_feed_news(
        self,
        limit: Limit = 20,
        since_last: Annotated[
            bool, Field(description="Only what was not told before, and count it as told; false just shows the newest")
        ] = True,
    ) -> FeedNews:
        """Tell what is new in the feeds that are followed, the newest first. Each entry is told once."""
        person = _current_person()
        followed = await self._store.list_feeds(person)
        read, failed = await self._read_all(followed)

        def choose(feeds: list[FollowedFeed]) -> FeedNews:
            """Runs while the file is locked, so that two concurrent calls do not return the same entry."""
            waiting: list[tuple[FollowedFeed, FeedEntry]] = []
            for feed in feeds:
                seen = set(feed.seen) if since_last else set[str]()
                waiting += [(feed, entry) for entry in read.get(feed.url, ()) if entry.id not in seen]
            waiting.sort(key=lambda pair: _published_or_min(pair[1]), reverse=True)
            if since_last:
                for feed, entry in waiting[:limit]:
                    feed.mark([entry.id])
            entries = [_to_entry(entry, feed.name) for feed, entry in waiting[:limit]]
            return FeedNews(entries=entries, more=max(0, len(waiting) - limit), failed=failed)

        return await self._store.change(person, choose)

    async def _read_all(self, feeds: list[FollowedFeed]) -> tuple[dict[str, list[FeedEntry]], dict[str, str]]:
        room = asyncio.Semaphore(_AT_ONCE)
        read: dict[str, list[FeedEntry]] = {}
        failed: dict[str, str] = {}
        call = current_call()

        async def read_one_feed(feed: FollowedFeed) -> None:
            async with room:
                try:
                    read[feed.url] = _sort_newest_first(await self._reader.read(feed.url))
                except AnnabelleError as error:
                    failed[feed.name] = error.message
                await call.progress(len(read) + len(failed), len(feeds), feed.name)

        try:
            async with asyncio.timeout(_ALL_SECONDS), asyncio.TaskGroup() as group:
                for feed in feeds:
                    group.create_task(read_one_feed(feed))
        except TimeoutError:
            late = [feed.name for feed in feeds if feed.url not in read and feed.name not in failed]
            failed |= dict.fromkeys(late, "It was not read in time; ask again.")
        return read, failed


def _current_person() -> str:
    return current_call().user_id or "people"


def _published_or_min(entry: FeedEntry) -> datetime:
    return entry.published or datetime.min.replace(tzinfo=UTC)


def _sort_newest_first(feed: ReadFeed) -> list[FeedEntry]:
    """Newest first; entries without a time follow in the feed's own order."""
    return sorted(feed.entries, key=_published_or_min, reverse=True)


def _to_entry(entry: FeedEntry, feed: str | None = None) -> FeedNewsEntry:
    return FeedNewsEntry.model_validate(entry).model_copy(update={"feed": feed})
