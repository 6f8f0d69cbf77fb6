"""Tools that read feeds and keep up with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import AnnabelleError, Conflict, NotFound, TooLarge
from annabelle.servers.everyday.feed_reader import FeedEntry, FeedReader, ReadFeed
from annabelle.servers.everyday.feed_results import FeedContent, FeedLine, FeedList, FeedNews, Following, News
from annabelle.servers.everyday.feed_shelf import MAX_FEEDS, FeedShelf, FollowedFeed
from annabelle.servers.kit import current_call, tool

_AT_ONCE = 5
_ALL_SECONDS = 40.0
"""For all feeds together: less than a call may take, so that what was read is told."""

Url = Annotated[str, Field(min_length=8, max_length=2000, description="Address of the RSS or Atom feed")]
Limit = Annotated[int, Field(ge=1, le=100, description="How many entries at most")]


class Feeds:
    """read_feed, follow_feed, unfollow_feed, list_feeds and get_feed_news."""

    def __init__(self, reader: FeedReader, shelf: FeedShelf, clock: Callable[[], datetime]) -> None:
        self._reader, self._shelf, self._clock = reader, shelf, clock

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
            for entry in _newest(feed)
            if start is None or (entry.published is not None and entry.published > start)
        ]
        shown = [_news(entry) for entry in entries[:limit]]
        return FeedContent(title=feed.title, entries=shown, more=max(0, len(entries) - limit))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def follow_feed(
        self,
        url: Url,
        name: Annotated[str, Field(max_length=80, description="What to call it; its own title if left out")] = "",
    ) -> Following:
        """Follow a feed: from now on get_feed_news tells what is new in it. What it has already counts as told; use
        read_feed for that."""
        feed = await self._reader.read(url)
        called = " ".join(name.split()) or feed.title[:80]

        def add(feeds: list[FollowedFeed]) -> Following:
            same = next((known for known in feeds if known.url == url), None)
            if same is not None:
                return Following(name=same.name, url=url, message=f"{same.name} is followed already.")
            if any(known.name.casefold() == called.casefold() for known in feeds):
                raise Conflict(f"Another feed is called {called!r}.", hint="Give it another name.", field="name")
            if len(feeds) >= MAX_FEEDS:
                raise TooLarge(f"{MAX_FEEDS} feeds are followed already.", hint="unfollow_feed makes room.")
            feeds.append(
                FollowedFeed(name=called, url=url, since=self._clock(), seen=[entry.id for entry in feed.entries])
            )
            message = f"{called} is followed from now on. It has {len(feed.entries)} entries; read_feed shows them."
            return Following(name=called, url=url, message=message)

        return await self._shelf.change(_person(), add)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=False)
    async def unfollow_feed(
        self, name: Annotated[str, Field(min_length=1, max_length=2000, description="Its name or address")]
    ) -> Following:
        """Stop following a feed. What was told of it already is forgotten."""

        def remove(feeds: list[FollowedFeed]) -> Following:
            for feed in feeds:
                if name.strip().casefold() in (feed.name.casefold(), feed.url.casefold()):
                    feeds.remove(feed)
                    return Following(name=feed.name, url=feed.url, message=f"{feed.name} is no longer followed.")
            known = ", ".join(feed.name for feed in feeds[:20])
            hint = f"Followed are: {known}." if known else "No feed is followed."
            raise NotFound(f"No feed called {name[:80]!r} is followed.", hint=hint, field="name")

        return await self._shelf.change(_person(), remove)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_feeds(self) -> FeedList:
        """List the feeds that are followed."""
        feeds = await self._shelf.of(_person())
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
        person = _person()
        followed = await self._shelf.of(person)
        read, failed = await self._read_all(followed)

        def choose(feeds: list[FollowedFeed]) -> FeedNews:
            """Decided while the file is held: two calls at once do not tell the same entry twice."""
            waiting: list[tuple[FollowedFeed, FeedEntry]] = []
            for feed in feeds:
                seen = set(feed.seen) if since_last else set[str]()
                waiting += [(feed, entry) for entry in read.get(feed.url, ()) if entry.id not in seen]
            waiting.sort(key=lambda pair: _when(pair[1]), reverse=True)
            if since_last:
                for feed, entry in waiting[:limit]:
                    feed.mark([entry.id])
            entries = [_news(entry, feed.name) for feed, entry in waiting[:limit]]
            return FeedNews(entries=entries, more=max(0, len(waiting) - limit), failed=failed)

        return await self._shelf.change(person, choose)

    async def _read_all(self, feeds: list[FollowedFeed]) -> tuple[dict[str, list[FeedEntry]], dict[str, str]]:
        room = asyncio.Semaphore(_AT_ONCE)
        read: dict[str, list[FeedEntry]] = {}
        failed: dict[str, str] = {}
        call = current_call()

        async def one(feed: FollowedFeed) -> None:
            async with room:
                try:
                    read[feed.url] = _newest(await self._reader.read(feed.url))
                except AnnabelleError as error:
                    failed[feed.name] = error.message
                await call.progress(len(read) + len(failed), len(feeds), feed.name)

        try:
            async with asyncio.timeout(_ALL_SECONDS), asyncio.TaskGroup() as group:
                for feed in feeds:
                    group.create_task(one(feed))
        except TimeoutError:
            late = [feed.name for feed in feeds if feed.url not in read and feed.name not in failed]
            failed |= dict.fromkeys(late, "It was not read in time; ask again.")
        return read, failed


def _person() -> str:
    return current_call().user_id or "people"


def _when(entry: FeedEntry) -> datetime:
    return entry.published or datetime.min.replace(tzinfo=UTC)


def _newest(feed: ReadFeed) -> list[FeedEntry]:
    """By time where times are given; entries without one keep the feed's own order, after the others."""
    return sorted(feed.entries, key=_when, reverse=True)


def _news(entry: FeedEntry, feed: str | None = None) -> News:
    return News(
        title=entry.title,
        link=entry.link,
        published=entry.published,
        summary=entry.summary,
        author=entry.author,
        feed=feed,
    )
