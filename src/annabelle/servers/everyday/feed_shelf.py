"""The feeds each person follows, and which of their entries were told already."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import write_atomically
from annabelle.servers.kit import in_thread

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
        """Remember what was told, the newest last; the oldest are forgotten when there are very many."""
        fresh = set(ids)
        self.seen = [*(old for old in self.seen if old not in fresh), *ids][-_MAX_SEEN:]


class Shelf(BaseModel):
    """By person: what one follows is nobody else's business."""

    people: dict[str, list[FollowedFeed]] = {}


class FeedShelf:
    """The file, changed by one call at a time."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "feeds.json"
        self._lock = asyncio.Lock()

    async def of(self, person: str) -> list[FollowedFeed]:
        async with self._lock:
            return (await in_thread(lambda stop: self._read())).people.get(person, [])

    async def change(self, person: str, work: Callable[[list[FollowedFeed]], T]) -> T:
        """Let `work` change a person's feeds; what it raises leaves the file as it was."""

        def inside() -> T:
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
            return await in_thread(lambda stop: inside())

    def _read(self) -> Shelf:
        try:
            return Shelf.model_validate(cast("object", json.loads(self._file.read_bytes())))
        except FileNotFoundError:
            return Shelf()
        except OSError as error:
            raise StorageTrouble(f"The list of feeds can not be read: {error.strerror}.") from error
        except (ValueError, ValidationError):
            # Put aside, so that a person can still look into it.
            broken = self._file.with_suffix(".broken.json")
            _log.warning("The list of feeds was not readable and is kept as %s", broken.name)
            self._file.replace(broken)
            return Shelf()

    def _write(self, text: str) -> None:
        try:
            write_atomically(self._file, text)
        except OSError as error:
            raise StorageTrouble(f"The list of feeds can not be written: {error.strerror}.") from error
