"""Leaves a provider that is down alone for a while, so that not every search waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from annabelle.embeddings.embedder import EmbeddingsUnavailable

QUIET_SECONDS = 15.0


class Pause:
    """After a failure the same answer comes at once until the pause is over; then one caller tries again."""

    def __init__(self, seconds: float = QUIET_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._trouble: EmbeddingsUnavailable | None = None
        self._until = 0.0
        self._trying = False

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Around each request: raises at once while the provider rests, and takes note of how the request ends."""
        if self._trouble is not None and (self._trying or self._clock() < self._until):
            raise EmbeddingsUnavailable(self._trouble.message, hint=self._trouble.hint)
        self._trying = True
        try:
            yield
        except EmbeddingsUnavailable as trouble:
            self._trouble, self._until = trouble, self._clock() + self._seconds
            raise
        else:
            self._trouble = None
        finally:
            self._trying = False
