"""What the tools for feeds give back."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from annabelle.servers.kit import Result


class News(BaseModel):
    """One entry of a feed."""

    model_config = ConfigDict(frozen=True)

    title: str
    link: str | None = None
    published: datetime | None = None
    summary: str = ""
    author: str | None = None
    feed: str | None = Field(default=None, description="The name it is followed by")

    def lines(self) -> str:
        when = f" ({self.published:%Y-%m-%d %H:%M})" if self.published else ""
        head = f"- {f'[{self.feed}] ' if self.feed else ''}{self.title}{when}"
        return "\n".join(
            filter(None, (head, self.link and f"  {self.link}", self.summary and f"  {self.summary[:300]}"))
        )


class FeedContent(Result):
    """What a feed has, the newest first."""

    title: str
    entries: list[News]
    more: int = Field(default=0, description="Entries beyond the limit")

    def text(self) -> str:
        lines = [entry.lines() for entry in self.entries] or ["No entries."]
        return "\n".join([self.title, *lines, *([f"[{self.more} more]"] if self.more else [])])


class Following(Result):
    """What became of a feed."""

    name: str
    url: str
    message: str

    def text(self) -> str:
        return self.message


class FeedLine(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    url: str
    since: datetime


class FeedList(Result):
    """The feeds that are followed."""

    feeds: list[FeedLine]

    def text(self) -> str:
        return "\n".join(f"{feed.name}: {feed.url}" for feed in self.feeds) or "No feed is followed."


class FeedNews(Result):
    """New entries of all feeds that are followed, the newest first."""

    entries: list[News]
    more: int = Field(default=0, description="New entries beyond the limit; they come with the next call")
    failed: dict[str, str] = Field(default_factory=dict, description="Feeds that could not be read, and why")

    def text(self) -> str:
        lines = [entry.lines() for entry in self.entries] or ["Nothing new."]
        more = [f"[{self.more} more; ask again]"] if self.more else []
        return "\n".join([*lines, *more, *(f"{name}: {why}" for name, why in self.failed.items())])
