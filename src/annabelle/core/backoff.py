"""How often and how long something is retried, by class of error (DUR-05)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from annabelle.core.errors import AnnabelleError, RetryClass
from annabelle.core.settings import Settings

IMMEDIATE_RETRIES: Final = 2
BACKOFF_RETRIES: Final[dict[RetryClass, int]] = {"rate_limit": 5, "network": 3, "other": 2}
JITTER: Final = 0.2


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Two quick retries, then exponential ones as many as the error's class allows; then the error is final."""

    base_seconds: float = 10
    cap_seconds: float = 300
    immediate_seconds: float = 1.5

    @classmethod
    def from_settings(cls, settings: Settings) -> RetryPolicy:
        return cls(settings.retry_base_seconds, settings.retry_cap_seconds, settings.retry_immediate_seconds)

    def wait_seconds(self, error: AnnabelleError, failed: int) -> float | None:
        """Seconds to wait after the `failed`-th failure in a row (from 1); None when it is not tried again.

        An error that knows when the next try is possible is waited for that long: an earlier one would be wasted.
        """
        wait = self._usual_seconds(error, failed)
        return None if wait is None else max(wait, error.next_try or 0.0)

    def _usual_seconds(self, error: AnnabelleError, failed: int) -> float | None:
        if error.retry == "none":
            return None
        if failed <= IMMEDIATE_RETRIES:
            return self.immediate_seconds
        step = failed - IMMEDIATE_RETRIES
        if step > BACKOFF_RETRIES[error.retry]:
            return None
        # Spread out, so that many turns that failed together do not come back together.
        spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  no secret depends on it
        return min(self.cap_seconds, self.base_seconds * 2 ** (step - 1) * spread)
