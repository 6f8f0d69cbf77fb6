"""The feed: what an agent found and thought of for a person, each thing once (AGE-09)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, and_, or_, select

from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.core.text import split_search_words
from annabelle.store.portable_sql import InsertNew, field_values, from_row, read_all, read_first, require_found
from annabelle.store.tables import feed_items

FeedKind = Literal["discovery", "reflection"]
_insert = InsertNew(feed_items, ["user_id", "digest"], whole_rows=True)
_newest = select(feed_items).order_by(feed_items.c.created_at.desc(), feed_items.c.id.desc())


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFeedItem:
    user_id: str
    kind: FeedKind
    title: str
    content: str
    goal_id: str | None = None
    read_from: Sequence[str] | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedItem(NewFeedItem):
    id: str
    digest: str
    created_at: datetime


def add_feed_item(connection: Connection, new: NewFeedItem) -> FeedItem | None:
    """Stores an item; None if the person was told the same before, whatever its capitals and signs."""
    told = " ".join(split_search_words(f"{new.title} {new.content}"))
    values = field_values(new) | {
        "id": new_id("feed"),
        "digest": hashlib.sha256(told.encode()).hexdigest(),
        "read_from": None if new.read_from is None else list(new.read_from),
        "created_at": now(),
    }
    row = _insert.insert(connection, values)
    return None if row is None else from_row(FeedItem, row)


def list_feed(connection: Connection, user_id: str, limit: int = 50, before: FeedItem | None = None) -> list[FeedItem]:
    """A person's feed, newest first; what came before an item, if one is given."""
    query, columns = _newest.where(feed_items.c.user_id == user_id), feed_items.c
    if before is not None:
        same_time = and_(columns.created_at == before.created_at, columns.id < before.id)
        query = query.where(or_(columns.created_at < before.created_at, same_time))
    return read_all(connection, FeedItem, query.limit(limit))


def get_feed_item(connection: Connection, item_id: str, user_id: str) -> FeedItem:
    """Returns an item of this person's feed; NotFound for anyone else's."""
    own = select(feed_items).where(feed_items.c.id == item_id, feed_items.c.user_id == user_id)
    return require_found(read_first(connection, FeedItem, own), f"feed item {item_id}")


def list_feed_of_run(connection: Connection, message_id: str) -> list[FeedItem]:
    """What one run brought, in order."""
    return read_all(connection, FeedItem, _newest.where(feed_items.c.message_id == message_id))[::-1]
