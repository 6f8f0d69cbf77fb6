"""How often an agent's process has died: the wait before it comes back, and whether it flaps (AGT-06)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 600.0
FLAPPING_ABOVE = 3
_CAP_SECONDS = 30.0


class Restarts:
    """Counts deaths with the monotonic clock, so that a jump of the wall clock neither hides nor makes one."""

    def __init__(self, base_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._base, self._clock = base_seconds, clock
        self._recent: deque[float] = deque()
        self._in_a_row = 0
        self._last_death = 0.0
        self.count = 0

    def died(self) -> None:
        self._in_a_row += 1
        self._last_death = self._clock()

    def restarted(self) -> None:
        """A process was started in place of one that died."""
        self.count += 1
        self._recent.append(self._clock())

    def worked(self) -> None:
        """A turn was finished: the agent is healthy, so the next wait is short again."""
        self._in_a_row = 0

    @property
    def pending(self) -> bool:
        return self._in_a_row > 0

    @property
    def wait_seconds(self) -> float:
        """How long to wait from now before the next start."""
        if not self._in_a_row:
            return 0.0
        pause = min(_CAP_SECONDS, self._base * 2 ** (self._in_a_row - 1))
        return max(0.0, self._last_death + pause - self._clock())

    @property
    def flapping(self) -> bool:
        """More than three restarts within ten minutes."""
        while self._recent and self._recent[0] < self._clock() - WINDOW_SECONDS:
            self._recent.popleft()
        return len(self._recent) > FLAPPING_ABOVE
