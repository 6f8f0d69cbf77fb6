"""Which key stands in which row, in arrays instead of one object per key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MERGE_AT = 1024
_GONE = -1


class KeyIndex:
    """Keys to rows. 100,000 keys cost 1.6 MB where a dict takes 12.

    Two sorted arrays hold the bulk, a small dict what changed since; sorting anew on each change would make every
    insert pay for all the others.
    """

    def __init__(self) -> None:
        self._keys = np.empty(0, np.int64)
        self._rows = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}

    def rebuild(self, keys: NDArray[np.int64]) -> None:
        """Take over all keys at once, each at the row of its place."""
        order = np.argsort(keys, kind="stable")
        self._keys, self._rows, self._recent = keys[order], order, {}

    def get(self, key: int) -> int | None:
        row = self._recent.get(key)
        if row is None:
            place = int(np.searchsorted(self._keys, key))
            row = int(self._rows[place]) if place < len(self._keys) and self._keys[place] == key else _GONE
        return None if row == _GONE else row

    def set(self, key: int, row: int) -> None:
        self._recent[key] = row
        self._merge_when_due()

    def remove(self, key: int) -> None:
        self._recent[key] = _GONE
        self._merge_when_due()

    def rows_of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each key, -1 where it is not known."""
        self._merge()
        if not len(self._keys):
            return np.full(len(keys), _GONE, np.int64)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[places] == keys, self._rows[places], _GONE)

    def _merge_when_due(self) -> None:
        if len(self._recent) >= _MERGE_AT:
            self._merge()

    def _merge(self) -> None:
        if not self._recent:
            return
        changed = np.fromiter(self._recent.keys(), np.int64, len(self._recent))
        rows = np.fromiter(self._recent.values(), np.int64, len(self._recent))
        same = ~np.isin(self._keys, changed)
        there = rows != _GONE
        keys = np.concatenate([self._keys[same], changed[there]])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._rows = np.concatenate([self._rows[same], rows[there]])[order]
        self._recent = {}
