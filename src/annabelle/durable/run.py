"""One execution of one workflow: runs its steps, and reads the finished ones from the record.

A step is known by its name, and when a name comes again, by which time it is. So steps may run side by side and end in
any order: a replay finds each of them again, as long as concurrent ones have names of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from annabelle.core.errors import AnnabelleError, ToolTimeout
from annabelle.core.tools import JsonObject
from annabelle.durable.outcome import failure, success, unwrap
from annabelle.durable.retry import RetryPolicy

_log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[object]]

# The engine numbers its own operations from 1; ours start where it never gets.
FIRST_NUMBER: Final = 1_000_000


class Record(Protocol):
    """Where finished steps are written down for good."""

    async def __call__(self, number: int, key: str, outcome: JsonObject, started_ms: int) -> None: ...


class Run:
    """The steps of one workflow while it runs in this process."""

    def __init__(self, record: Record, recorded: dict[str, JsonObject], first_number: int = FIRST_NUMBER) -> None:
        self._record, self._recorded, self._next = record, recorded, first_number
        self._times: Counter[str] = Counter()

    def _key(self, name: str) -> str:
        self._times[name] += 1
        return name if self._times[name] == 1 else f"{name} #{self._times[name]}"

    async def step(self, name: str, work: Work, retry: RetryPolicy | None, timeout: float | None) -> object:
        key, failed = self._key(name), 0
        while True:
            outcome = await self._once(key if failed == 0 else f"{key}, retry {failed}", work, timeout)
            try:
                return unwrap(outcome)
            except AnnabelleError as error:
                failed += 1
                wait = retry.wait(error, failed) if retry else None
                if wait is None:
                    raise
                _log.warning("%s failed (%s); trying again in %.1f s", name, error.code, wait)
            # Between the tries, not inside one: a crash in the middle of a long wait goes on waiting, and counting.
            await self._sleep(f"{key}, wait {failed}", wait)

    async def sleep(self, seconds: float) -> None:
        await self._sleep(self._key("sleep"), seconds)

    async def _sleep(self, key: str, seconds: float) -> None:
        async def wake_up_at() -> float:
            return time.time() + seconds

        until = unwrap(await self._once(key, wake_up_at, None))
        assert isinstance(until, float | int)
        # Never longer than it was meant to be, whatever the clock did since.
        await asyncio.sleep(max(0.0, min(until - time.time(), seconds)))

    async def _once(self, key: str, work: Work, timeout: float | None) -> JsonObject:
        known = self._recorded.get(key)
        if known is not None:
            return known
        number, self._next = self._next, self._next + 1
        started_ms = int(time.time() * 1000)
        outcome = await _perform(key, work, timeout)
        await self._keep(number, key, outcome, started_ms)
        return outcome

    async def _keep(self, number: int, key: str, outcome: JsonObject, started_ms: int) -> None:
        """Write a finished step down even if the workflow is interrupted meanwhile: its work has been done."""
        recording = asyncio.ensure_future(self._record(number, key, outcome, started_ms))
        try:
            await asyncio.shield(recording)
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await recording
            raise


async def _perform(key: str, work: Work, timeout: float | None) -> JsonObject:
    deadline = asyncio.timeout(timeout)
    try:
        async with deadline:
            return success(await work())
    except AnnabelleError as error:
        return failure(error)
    except TimeoutError as error:
        if deadline.expired():
            return failure(ToolTimeout(f"{key} did not finish within {timeout:g} s."))
        return _unexpected(key, error)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled the workflow: something inside the step cancelled itself.
        return _unexpected(key, error)
    except Exception as error:  # noqa: BLE001  the edge where foreign work runs; the workflow must see an outcome
        return _unexpected(key, error)


def _unexpected(key: str, error: BaseException) -> JsonObject:
    _log.error("The step %s failed unexpectedly", key, exc_info=error)
    return failure(AnnabelleError(f"{key} failed unexpectedly: {type(error).__name__}: {error}."))
