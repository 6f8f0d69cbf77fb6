"""How long to wait before the next restart, and when to stop trying (I-18)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from annabelle.core.backoff import backoff_seconds

_CALM_FACTOR = 4


class RestartBackoff:
    """Waits double up to a cap. After `limit` restarts within the window it gives up. A calm period resets the wait."""

    def __init__(
        self, base: float, cap: float, limit: int, window: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._base, self._cap, self._limit, self._window = base, cap, limit, window
        self._clock = clock
        self._restarts: deque[float] = deque()
        self._step = 0

    def next_wait(self) -> float | None:
        """Seconds to wait before the next restart; None after too many."""
        now = self._clock()
        while self._restarts and now - self._restarts[0] > self._window:
            self._restarts.popleft()
        if len(self._restarts) >= self._limit:
            return None
        if not self._restarts or now - self._restarts[-1] > _CALM_FACTOR * self._cap:
            self._step = 0
        self._restarts.append(now)
        self._step += 1
        return backoff_seconds(self._step, self._base, self._cap)

    def reset(self) -> None:
        self._restarts.clear()
        self._step = 0
