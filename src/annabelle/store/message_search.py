"""Finds what was said in a person's threads by its words (THR-02).

Texts are folded here and not by the database: SQLite folds ASCII only, and PostgreSQL what its locale knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, select

from annabelle.core.messages import MessageSource
from annabelle.core.text import fold_for_search, split_search_words
from annabelle.store.message_removal import REMOVED
from annabelle.store.portable_sql import read_all
from annabelle.store.tables import messages, threads

_PAGE: Final = 200
_MOST_MESSAGES: Final = 10_000
_MOST_CHARS: Final = 20_000_000
_EXCERPT_CHARS: Final = 200
_CHUNK = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that has every word that was searched for."""

    position: int
    id: str
    thread_id: str
    channel: str
    source: MessageSource
    content: str
    created_at: datetime

    def excerpt(self, query: str) -> str:
        """The part of it around the first word that was searched for, on one line."""
        start = max(0, _find_first(self.content, _wanted(query)) - _EXCERPT_CHARS // 4)
        end = start + _EXCERPT_CHARS
        shown = " ".join(self.content[start:end].split())
        return f"{'…' if start else ''}{shown}{'…' if end < len(self.content) else ''}"


@dataclass(frozen=True, slots=True)
class FoundMessages:
    """What was found, newest first. `more_before` is the position to go on before, unless all was searched."""

    found: list[FoundMessage]
    more_before: int | None


def search_messages(
    connection: Connection,
    user_id: str,
    query: str,
    *,
    limit: int,
    before: int | None = None,
) -> FoundMessages:
    """Searches a person's messages, newest first, without work that nobody talks to.

    A bounded number of messages is read; the rest is searched by asking again.
    """
    wanted = _wanted(query)
    seen = messages.c.thread_id.in_(select(threads.c.id).where(threads.c.user_id == user_id, ~threads.c.internal))
    own = messages.c.user_id == user_id, seen, ~messages.c.background, messages.c.content != REMOVED
    columns = [messages.c[name] for name in FoundMessage.__dataclass_fields__]
    newest = select(*columns).where(*own).order_by(messages.c.position.desc()).limit(_PAGE)
    found: list[FoundMessage] = []
    count = chars = 0
    while wanted and count < _MOST_MESSAGES and chars < _MOST_CHARS:
        page = read_all(
            connection, FoundMessage, newest if before is None else newest.where(messages.c.position < before)
        )
        for message in page:
            count, chars, before = count + 1, chars + len(message.content), message.position
            if _has_all(message.content, wanted):
                found.append(message)
                if len(found) == limit:
                    return FoundMessages(found, before)
        if len(page) < _PAGE:
            return FoundMessages(found, None)
    return FoundMessages(found, before if wanted else None)


def _wanted(query: str) -> list[str]:
    """The folded words of a query; signs, such as an emoji, are looked for as they are."""
    return split_search_words(query) or query.split()


def _has_all(text: str, wanted: Sequence[str]) -> bool:
    folded = fold_for_search(text)
    return all(word in folded or word in text for word in wanted)


def _find_first(text: str, wanted: Sequence[str]) -> int:
    for chunk in _CHUNK.finditer(text):
        folded = fold_for_search(chunk[0])
        for word in wanted:
            if word in folded:
                # A text without spaces is one chunk, so look where in it.
                return chunk.start() + max(0, chunk[0].casefold().find(word))
    return max(0, text.find(wanted[0])) if wanted else 0
