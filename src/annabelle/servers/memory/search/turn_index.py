"""An in-memory index of each owner's conversation turns: neighbours, speaker and time."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from annabelle.core.text import split_search_words
from annabelle.language.lexicon import load_lexicon
from annabelle.store.memory.conversations import ConversationPosition

_NOBODY = load_lexicon("recall").words("nobody")
"""Speakers that are no names."""


class TurnNeighbours(NamedTuple):
    """Where one turn stands; 0 for no turn before or after it."""

    before: int
    after: int
    said_at: int
    """In seconds since 1970."""
    speaker: int
    asks: bool
    """Whether it ends in a question that somebody else answers in the next turn."""


class TurnIndex:
    """The turns of one owner by their ids. A turn's neighbours are those of its session."""

    def __init__(self) -> None:
        self._ids = array("q")
        self._before, self._after = array("q"), array("q")
        self._said_at = array("q")
        self._speakers = array("l")
        self._asks = bytearray()
        self._last: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self.named: dict[str, set[int]] = {}
        """The speakers behind each name, by the names' words: Anna Berg is asked about as Anna, too."""

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, place: ConversationPosition) -> None:
        """Add a turn. Turns come in the order of their ids, but for a few that were stored at the same moment."""
        where = bisect_left(self._ids, place.id)
        if where < len(self._ids) and self._ids[where] == place.id:
            return
        last = before = self._last.get(place.session_id, 0)
        after = 0
        while before > place.id:
            before, after = self._before[self._at(before)], before
        if before:
            self._after[self._at(before)] = place.id
        if after:
            self._before[self._at(after)] = place.id
        self._ids.insert(where, place.id)
        self._before.insert(where, before)
        self._after.insert(where, after)
        self._said_at.insert(where, int(place.said_at.timestamp()))
        self._speakers.insert(where, self._speaker(place.speaker))
        self._asks.insert(where, place.asks)
        if place.id > last:
            self._last[place.session_id] = place.id

    def drop(self, ids: Iterable[int]) -> None:
        """Take turns out; those on both sides become neighbours."""
        for turn in ids:
            where = bisect_left(self._ids, turn)
            if where == len(self._ids) or self._ids[where] != turn:
                continue
            before, after = self._before[where], self._after[where]
            if before:
                self._after[self._at(before)] = after
            if after:
                self._before[self._at(after)] = before
            else:
                self._last = {session: before if last == turn else last for session, last in self._last.items()}
                self._last = {session: last for session, last in self._last.items() if last}
            for column in (self._ids, self._before, self._after, self._said_at, self._speakers, self._asks):
                del column[where]

    def get(self, turn: int) -> TurnNeighbours | None:
        """Everything that is known of a turn but its words; nothing of one that is not there."""
        where = bisect_left(self._ids, turn)
        if where == len(self._ids) or self._ids[where] != turn:
            return None
        return TurnNeighbours(
            self._before[where],
            self._after[where],
            self._said_at[where],
            self._speakers[where],
            bool(self._asks[where]),
        )

    def between(self, since: datetime | None, until: datetime | None) -> list[int]:
        """Turns said from `since` up to but without `until`."""
        start = since.timestamp() if since else float("-inf")
        # Kept in whole seconds: the caller looks at the rows themselves for the rest.
        end = until.timestamp() if until else float("inf")
        return [turn for turn, at in zip(self._ids, self._said_at, strict=True) if start - 1 < at < end]

    def _at(self, turn: int) -> int:
        return bisect_left(self._ids, turn)

    def _speaker(self, name: str) -> int:
        number = self._names.setdefault(name, len(self._names))
        for word in split_search_words(name):
            if word not in _NOBODY and len(word) > 1:
                self.named.setdefault(word, set()).add(number)
        return number
