"""The last hour of an agent in sixty buckets of a minute (CST-01)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BUCKETS: Final = 60


@dataclass(frozen=True, slots=True)
class Bucket:
    """What was used in one minute."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Bucket) -> Bucket:
        return Bucket(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
        )


class Window:
    """Sixty minutes that end with the latest one it was told of.

    Minutes are numbers of any clock. A clock that goes back is not followed: what comes then counts in the latest
    minute, so that nothing is dropped early and nothing counts twice.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, Bucket] = {}
        self._latest = 0

    def add(self, minute: int, prompt_tokens: int, completion_tokens: int, calls: int = 1) -> None:
        """Count a call, or several."""
        minute = self._advance(minute)
        used = Bucket(max(0, prompt_tokens), max(0, completion_tokens), max(0, calls))
        self._buckets[minute] = self._buckets.get(minute, Bucket()) + used

    def clear(self) -> None:
        """Forget the hour."""
        self._buckets.clear()

    def total(self, minute: int) -> Bucket:
        """The whole hour that ends with this minute."""
        self._advance(minute)
        return sum(self._buckets.values(), Bucket())

    def short(self, minute: int, minutes: int) -> Bucket:
        """The last few minutes, this one included."""
        first = self._advance(minute) - minutes
        return sum((bucket for at, bucket in self._buckets.items() if at > first), Bucket())

    def baseline(self, minute: int, minutes: int) -> list[Bucket]:
        """The minutes before the last few in which anything was used."""
        first = self._advance(minute) - minutes
        return [bucket for at, bucket in self._buckets.items() if at <= first and bucket.calls]

    @property
    def active(self) -> int:
        return sum(1 for bucket in self._buckets.values() if bucket.calls)

    def _advance(self, minute: int) -> int:
        if not self._buckets:
            self._latest = minute
        if minute > self._latest:
            self._latest = minute
            for old in [at for at in self._buckets if at <= minute - BUCKETS]:
                del self._buckets[old]
        return self._latest
