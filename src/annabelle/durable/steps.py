"""Steps of one workflow run, with results and errors as JSON. Steps have names, so they may finish in any order."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final, Protocol, cast

from dbos import Serializer

from annabelle.core.backoff import RetryPolicy
from annabelle.core.errors import AnnabelleError, ErrorBody, ToolTimeout, TooManyRequests
from annabelle.core.tools import JsonObject

OK, ERROR, NEXT_TRY = "ok", "error", "next_try"


def success_outcome(value: object) -> JsonObject:
    return {OK: value}


def failure_outcome(error: AnnabelleError) -> JsonObject:
    later: JsonObject = {} if error.next_try is None else {NEXT_TRY: error.next_try}
    return {ERROR: error.body().model_dump(exclude_none=True), **later}


def unwrap_outcome(outcome: JsonObject) -> object:
    """Returns the value, or raises the stored error."""
    if ERROR in outcome:
        error = rebuild_error(ErrorBody.model_validate(outcome[ERROR]))
        error.next_try = cast("float | None", outcome.get(NEXT_TRY))
        raise error
    return outcome[OK]


def rebuild_error(body: ErrorBody) -> AnnabelleError:
    kind = _error_classes().get(body.code, AnnabelleError)
    if issubclass(kind, TooManyRequests):
        return kind(body.message, hint=body.hint)
    return kind(body.message, hint=body.hint, field=body.field)


def _represents_its_code(kind: type[AnnabelleError]) -> bool:
    return kind.__module__ == AnnabelleError.__module__ or "code" in vars(kind)


@cache
def _error_classes() -> dict[str, type[AnnabelleError]]:
    found: dict[str, type[AnnabelleError]] = {}
    level: list[type[AnnabelleError]] = [AnnabelleError]
    while level:
        # Deeper classes win: one that keeps its parent's code is more specific. Only in core.errors, because classes
        # elsewhere may have other constructors.
        found.update({kind.code: kind for kind in level if _represents_its_code(kind)})
        level = [child for kind in level for child in kind.__subclasses__()]
    return found


_log = logging.getLogger(__name__)

StepFunction = Callable[[], Awaitable[object]]

# DBOS numbers its own operations from 1; ours start beyond them.
FIRST_NUMBER: Final = 1_000_000


class StepWriter(Protocol):
    async def __call__(self, number: int, key: str, outcome: JsonObject, started_ms: int) -> None: ...


class WorkflowRun:
    """Steps of one workflow while it runs in this process."""

    def __init__(self, record: StepWriter, recorded: dict[str, JsonObject], first_number: int = FIRST_NUMBER) -> None:
        self._record, self._recorded, self._next = record, recorded, first_number
        self._times: Counter[str] = Counter()

    def _key(self, name: str) -> str:
        self._times[name] += 1
        return name if self._times[name] == 1 else f"{name} #{self._times[name]}"

    async def step(self, name: str, work: StepFunction, retry: RetryPolicy | None, timeout: float | None) -> object:
        key, failed = self._key(name), 0
        while True:
            outcome = await self._run_once(key if failed == 0 else f"{key}, retry {failed}", work, timeout)
            try:
                return unwrap_outcome(outcome)
            except AnnabelleError as error:
                failed += 1
                wait = retry.wait_seconds(error, failed) if retry else None
                if wait is None:
                    raise
                _log.warning("%s failed (%s); trying again in %.1f s", name, error.code, wait)
            # A separate step, so that after a crash the wait and the count continue.
            await self._sleep(f"{key}, wait {failed}", wait)

    async def sleep(self, seconds: float) -> None:
        await self._sleep(self._key("sleep"), seconds)

    async def _sleep(self, key: str, seconds: float) -> None:
        async def wake_up_at() -> float:
            return time.time() + seconds

        until = unwrap_outcome(await self._run_once(key, wake_up_at, None))
        assert isinstance(until, float | int)
        # At most `seconds`, even if the clock changed.
        await asyncio.sleep(max(0.0, min(until - time.time(), seconds)))

    async def _run_once(self, key: str, work: StepFunction, timeout: float | None) -> JsonObject:
        known = self._recorded.get(key)
        if known is not None:
            return known
        number, self._next = self._next, self._next + 1
        started_ms = int(time.time() * 1000)
        outcome = await _run_function(key, work, timeout)
        await self._write(number, key, outcome, started_ms)
        return outcome

    async def _write(self, number: int, key: str, outcome: JsonObject, started_ms: int) -> None:
        """Stores a finished step even if the workflow is interrupted meanwhile: its work has been done."""
        recording = asyncio.ensure_future(self._record(number, key, outcome, started_ms))
        try:
            await asyncio.shield(recording)
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await recording
            raise


async def _run_function(key: str, work: StepFunction, timeout: float | None) -> JsonObject:
    deadline = asyncio.timeout(timeout)
    try:
        async with deadline:
            return success_outcome(await work())
    except AnnabelleError as error:
        return failure_outcome(error)
    except TimeoutError as error:
        if deadline.expired():
            return failure_outcome(ToolTimeout(f"{key} did not finish within {timeout:g} s."))
        return _unexpected_failure(key, error)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # The workflow was not cancelled: something inside the step cancelled itself.
        return _unexpected_failure(key, error)
    except Exception as error:  # noqa: BLE001  the edge where foreign work runs; the workflow must see an outcome
        return _unexpected_failure(key, error)


def _unexpected_failure(key: str, error: BaseException) -> JsonObject:
    _log.error("The step %s failed unexpectedly", key, exc_info=error)
    return failure_outcome(AnnabelleError(f"{key} failed unexpectedly: {type(error).__name__}: {error}."))


_ENGINE_ERROR = "__engine_error__"


class JsonSerializer(Serializer):
    """JSON with all non-ASCII escaped, so that any string survives on both databases."""

    def name(self) -> str:
        return "annabelle_json"

    def serialize(self, data: object) -> str:
        if isinstance(data, BaseException):
            # Only DBOS's own errors get here; ours are stored as values.
            data = {_ENGINE_ERROR: f"{type(data).__name__}: {data}"}
        return json.dumps(data, separators=(",", ":"))

    def deserialize(self, serialized_data: str) -> object:
        value = json.loads(serialized_data)
        if isinstance(value, dict) and _ENGINE_ERROR in value:
            return RuntimeError(str(cast("dict[str, object]", value)[_ENGINE_ERROR]))
        return cast("object", value)
