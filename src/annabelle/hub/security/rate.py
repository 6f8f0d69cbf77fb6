"""A rate limit per token: a full bucket allows a burst, then requests pass as fast as it refills (API-05)."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from annabelle.core.errors import TooManyRequests


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class RateLimit:
    """Counts requests by caller. The clock is the monotonic one: a jump of the wall clock changes nothing."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity, self._per_second = float(per_minute), per_minute / 60
        self._clock = clock
        self._buckets: dict[Hashable, _Bucket] = {}

    def take(self, caller: Hashable) -> None:
        now = self._clock()
        bucket = self._buckets.setdefault(caller, _Bucket(self._capacity, now))
        bucket.tokens = min(self._capacity, bucket.tokens + (now - bucket.filled_at) * self._per_second)
        bucket.filled_at = now
        if bucket.tokens < 1:
            raise TooManyRequests(
                "Too many requests in a short time.",
                hint="Wait as long as Retry-After says, or raise ANNABELLE_RATE_LIMIT_PER_MINUTE.",
                retry_after=(1 - bucket.tokens) / self._per_second,
            )
        bucket.tokens -= 1
