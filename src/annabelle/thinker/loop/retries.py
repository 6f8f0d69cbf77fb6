"""Tries a model step again when trying again can help; the waits are durable and a cancel ends them (DUR-05)."""

from __future__ import annotations

import logging
from datetime import timedelta

from annabelle.core.errors import AnnabelleError, HubUnreachable, TurnCancelled
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.durable.retry import RetryPolicy
from annabelle.thinker.engine import CANCEL_TOPIC, Engine, Work
from annabelle.thinker.live import LiveTurn

_LONG_SECONDS = 5.0
_HUB_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Retries:
    """The tries of one model step. `waited` is what they cost on the turn's clock."""

    def __init__(self, engine: Engine, policy: RetryPolicy, live: LiveTurn, step: int, time_left: float) -> None:
        self._engine, self._policy, self._live, self._step = engine, policy, live, step
        self._time_left = time_left
        self.waited = 0.0

    async def run(self, name: str, work: Work) -> JsonObject:
        failures = 0
        while True:
            try:
                async with self._live.step():
                    return await self._engine.step(name, work)
            except AnnabelleError as error:
                failures += 1
                delay = self._delay(error, failures)
                if delay is None:
                    raise
                _log.warning("%s failed (%s); next try in %.1f s", name, error.message, delay)
                self._tell(error, delay)
            if await self._engine.wait(CANCEL_TOPIC, delay):
                raise TurnCancelled("The turn was stopped.")
            self.waited += delay

    def _delay(self, error: AnnabelleError, failures: int) -> float | None:
        """By the error's class; a hub that is away is waited for as long as the turn has time (THK-06)."""
        if isinstance(error, HubUnreachable):
            return _HUB_SECONDS if self.waited < self._time_left else None
        return self._policy.wait(error, failures)

    def _tell(self, error: AnnabelleError, delay: float) -> None:
        """A long wait is explained once per turn, with the time of the next try."""
        if delay < _LONG_SECONDS:
            return
        at = now() + timedelta(seconds=delay)
        text = f"{error.message} The next try is in {delay:.0f} seconds."
        data: JsonObject = {"text": text, "code": error.code, "next_try_at": at.isoformat(timespec="seconds")}
        self._live.stream.fact("notice", "model-retry", data, step=self._step)
