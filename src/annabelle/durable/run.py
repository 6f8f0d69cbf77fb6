"""One execution of one workflow: its steps, numbered in the order they start, finished ones read from the record."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Final

from annabelle.core.errors import AnnabelleError, ToolTimeout
from annabelle.core.tools import JsonObject
from annabelle.durable.engine import Engine, Execution, RecordedStep
from annabelle.durable.outcome import failure, success, unwrap
from annabelle.durable.retry import MAX_TRIES, RetryPolicy

_log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[object]]

# The engine numbers its own operations from 1; ours start where it never gets.
FIRST_NUMBER: Final = 1_000_000


class Run:
    """Belongs to the task that runs the workflow; not shared."""

    def __init__(
        self, engine: Engine, threads: Executor, execution: Execution, recorded: dict[int, RecordedStep]
    ) -> None:
        self._engine, self._threads, self._execution, self._recorded = engine, threads, execution, recorded
        self._next = FIRST_NUMBER

    @property
    def workflow_id(self) -> str:
        return self._execution.workflow_id

    def _reserve(self, count: int) -> int:
        # Taken when a step starts, with room for all its retries: so numbers do not depend on which of several
        # concurrent steps fails first, and a replay finds each record again.
        first = self._next
        self._next += count
        return first

    async def step(self, name: str, work: Work, retry: RetryPolicy | None, timeout: float | None) -> object:
        first = self._reserve(2 * MAX_TRIES if retry else 1)
        failed = 0
        while True:
            outcome = await self._once(first + 2 * failed, name, work, timeout)
            try:
                return unwrap(outcome)
            except AnnabelleError as error:
                failed += 1
                wait = retry.wait(error, failed) if retry else None
                if wait is None:
                    raise
                _log.warning("%s failed (%s); trying again in %.1f s", name, error.code, wait)
            await self._sleep(first + 2 * failed - 1, wait)

    async def sleep(self, seconds: float) -> None:
        await self._sleep(self._reserve(1), seconds)

    async def _sleep(self, number: int, seconds: float) -> None:
        async def wake_up_at() -> float:
            return time.time() + seconds

        until = unwrap(await self._once(number, "sleep", wake_up_at, None))
        assert isinstance(until, float | int)
        # Never longer than it was meant to be, whatever the clock did since.
        await asyncio.sleep(max(0.0, min(until - time.time(), seconds)))

    async def _once(self, number: int, name: str, work: Work, timeout: float | None) -> JsonObject:
        if known := self._recorded.get(number):
            if known.name != name:
                raise AnnabelleError(
                    f"The workflow {self.workflow_id} now runs {name} where it ran {known.name} before.",
                    hint="It was changed while it was running; send the message again.",
                )
            return known.outcome
        started_ms = int(time.time() * 1000)
        outcome = await self._perform(name, work, timeout)
        recording = asyncio.get_running_loop().run_in_executor(
            self._threads, self._engine.record, self._execution, number, RecordedStep(name, outcome), started_ms
        )
        # The work is done: whoever cancels now must not keep it from being written down.
        await asyncio.shield(recording)
        return outcome

    async def _perform(self, name: str, work: Work, timeout: float | None) -> JsonObject:
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                return success(await work())
        except AnnabelleError as error:
            return failure(error)
        except TimeoutError as error:
            if deadline.expired():
                return failure(ToolTimeout(f"{name} did not finish within {timeout:g} s."))
            return _unexpected(name, error)
        except Exception as error:  # noqa: BLE001  the edge where foreign work runs; the workflow must see one outcome
            return _unexpected(name, error)


def _unexpected(name: str, error: Exception) -> JsonObject:
    _log.error("The step %s failed unexpectedly", name, exc_info=error)
    return failure(AnnabelleError(f"{name} failed unexpectedly: {type(error).__name__}: {error}."))
