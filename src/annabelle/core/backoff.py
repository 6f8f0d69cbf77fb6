"""Retry delays: exponential backoff, with a number of retries per class of error (DUR-05)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from annabelle.core.errors import AnnabelleError, RetryClass

if TYPE_CHECKING:
    from annabelle.core.settings import Settings

IMMEDIATE_RETRIES: Final = 2
BACKOFF_RETRIES: Final[dict[RetryClass, int]] = {"rate_limit": 5, "network": 3, "other": 2}
JITTER: Final = 0.2
_MOST_DOUBLINGS: Final = 60
"""Bounds the exponent: without it the power overflows a float after a thousand failures."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Two quick retries, then as many with exponential backoff as the class of error allows."""

    base_seconds: float = 10
    cap_seconds: float = 300
    immediate_seconds: float = 1.5

    @classmethod
    def from_settings(cls, settings: Settings) -> RetryPolicy:
        return cls(settings.retry_base_seconds, settings.retry_cap_seconds, settings.retry_immediate_seconds)

    def wait_seconds(self, error: AnnabelleError, failed: int) -> float | None:
        """Seconds to wait after the `failed`-th failure in a row (from 1); None to give up. At least `next_try`."""
        wait = self._usual_seconds(error, failed)
        return None if wait is None else max(wait, error.next_try or 0.0)

    def tries(self, error: AnnabelleError) -> int:
        """How often something is tried in all that fails like this."""
        return 1 if error.retry == "none" else 1 + IMMEDIATE_RETRIES + BACKOFF_RETRIES[error.retry]

    def _usual_seconds(self, error: AnnabelleError, failed: int) -> float | None:
        if error.retry == "none":
            return None
        if failed <= IMMEDIATE_RETRIES:
            return self.immediate_seconds
        step = failed - IMMEDIATE_RETRIES
        if step > BACKOFF_RETRIES[error.retry]:
            return None
        # Jitter keeps turns that failed together from retrying together.
        return backoff_seconds(step, self.base_seconds, self.cap_seconds, JITTER)


def backoff_seconds(failed: int, base: float, cap: float, jitter: float = 0.0) -> float:
    """Seconds to wait after the `failed`-th failure in a row (from 1): doubles up to `cap`, varied by `jitter`."""
    spread = random.uniform(1 - jitter, 1 + jitter) if jitter else 1.0  # noqa: S311  no secret depends on it
    return min(cap, base * 2 ** min(failed - 1, _MOST_DOUBLINGS) * spread)
