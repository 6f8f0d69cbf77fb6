"""Steps of one workflow, without an engine: what is read from the record and what is done."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from annabelle.core.backoff import RetryPolicy
from annabelle.core.errors import AnnabelleError, ProviderDown, ProviderRefused, ToolTimeout
from annabelle.core.tools import JsonObject
from annabelle.durable.steps import FIRST_NUMBER, WorkflowRun, success_outcome

QUICK = RetryPolicy(base_seconds=0.001, cap_seconds=0.002, immediate_seconds=0.001)


class Book:
    """A record in memory."""

    def __init__(self) -> None:
        self.steps: dict[str, JsonObject] = {}
        self.numbers: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, number: int, key: str, outcome: JsonObject, started_ms: int) -> None:
        await self.gate.wait()
        assert key not in self.steps, f"{key} was done twice"
        self.steps[key] = outcome
        self.numbers.append(number)


class Effect:
    def __init__(self, *outcomes: object) -> None:
        self.calls = 0
        self._outcomes = list(outcomes)

    async def __call__(self) -> object:
        self.calls += 1
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


async def test_a_finished_step_is_read_and_not_done_again() -> None:
    book, effect = Book(), Effect({"x": 1})
    assert await WorkflowRun(book, {}).step("a", effect, None, None) == {"x": 1}
    assert await WorkflowRun(book, dict(book.steps)).step("a", effect, None, None) == {"x": 1}
    assert effect.calls == 1


async def test_a_step_that_failed_fails_the_same_way_again() -> None:
    book, effect = Book(), Effect(ProviderRefused("wrong key", hint="fix it"))
    for recorded in ({}, book.steps):
        with pytest.raises(ProviderRefused, match="wrong key") as caught:
            await WorkflowRun(book, dict(recorded)).step("a", effect, None, None)
        assert caught.value.hint == "fix it"
    assert effect.calls == 1


async def test_the_same_name_again_is_another_step() -> None:
    book, effect = Book(), Effect(1, 2, 3)
    run = WorkflowRun(book, {})
    assert [await run.step("a", effect, None, None) for _ in range(3)] == [1, 2, 3]
    replay = WorkflowRun(book, dict(book.steps))
    assert [await replay.step("a", effect, None, None) for _ in range(3)] == [1, 2, 3]
    assert effect.calls == 3


async def test_concurrent_steps_with_names_of_their_own_are_found_whatever_ended_first() -> None:
    book, effects = Book(), [Effect(n) for n in range(4)]
    run = WorkflowRun(book, {})
    await asyncio.gather(run.step("2", effects[2], None, None), run.step("0", effects[0], None, None))
    replay = WorkflowRun(book, dict(book.steps), max(book.numbers) + 1)
    found = await asyncio.gather(*(replay.step(f"{n}", effects[n], None, None) for n in range(4)))
    assert found == [0, 1, 2, 3]
    assert [effect.calls for effect in effects] == [1, 1, 1, 1]
    assert len(set(book.numbers)) == 4
    assert min(book.numbers) >= FIRST_NUMBER


@pytest.mark.req("DUR-02", "DUR-05")
async def test_a_failing_step_is_tried_again_and_every_try_is_on_record() -> None:
    book, effect = Book(), Effect(ProviderDown("gone"), ProviderDown("gone"), "back")
    assert await WorkflowRun(book, {}).step("a", effect, QUICK, None) == "back"
    assert list(book.steps) == ["a", "a, wait 1", "a, retry 1", "a, wait 2", "a, retry 2"]


@pytest.mark.req("DUR-05")
async def test_the_last_failure_is_final() -> None:
    book, effect = Book(), Effect(ProviderDown("gone"))
    with pytest.raises(ProviderDown, match="gone"):
        await WorkflowRun(book, {}).step("a", effect, QUICK, None)
    assert effect.calls == 1 + 2 + 3


@pytest.mark.req("DUR-02")
async def test_a_step_has_a_time_limit_of_its_own() -> None:
    async def hang() -> object:
        await asyncio.Event().wait()
        return None

    with pytest.raises(ToolTimeout, match=r"a did not finish within 0\.01 s"):
        await WorkflowRun(Book(), {}).step("a", hang, None, 0.01)


@pytest.mark.parametrize("error", [KeyError("x"), TimeoutError("inner"), asyncio.CancelledError("inner")])
async def test_an_unexpected_error_inside_a_step_is_an_outcome_like_any_other(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    book = Book()
    with pytest.raises(AnnabelleError, match="a failed unexpectedly: " + type(error).__name__):
        await WorkflowRun(book, {}).step("a", Effect(error), None, None)
    assert list(book.steps) == ["a"]
    assert caplog.records[-1].exc_info is not None


async def test_a_step_that_is_interrupted_is_not_on_record() -> None:
    book, begun = Book(), asyncio.Event()

    async def hang() -> object:
        begun.set()
        await asyncio.Event().wait()
        return None

    task = asyncio.create_task(WorkflowRun(book, {}).step("a", hang, None, None))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert book.steps == {}


async def test_a_step_that_ended_is_written_down_although_it_is_interrupted() -> None:
    book, effect = Book(), Effect("sent")
    book.gate.clear()
    task = asyncio.create_task(WorkflowRun(book, {}).step("a", effect, None, None))
    while not effect.calls:  # noqa: ASYNC110  one turn of the loop
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    book.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert book.steps == {"a": success_outcome("sent")}


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    really_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if threading.current_thread() is not threading.main_thread():
            await really_sleep(seconds)  # an engine of another test, which goes on in its own thread
        else:
            found.append(seconds)

    monkeypatch.setattr("annabelle.durable.steps.asyncio.sleep", sleep)
    return found


async def test_a_sleep_after_a_crash_lasts_for_what_is_left(slept: list[float]) -> None:
    await WorkflowRun(Book(), {"sleep": success_outcome(time.time() + 40)}).sleep(100)
    await WorkflowRun(Book(), {"sleep": success_outcome(time.time() - 40)}).sleep(100)
    assert 39 < slept[0] <= 40
    assert slept[1] == 0


async def test_a_clock_that_jumped_back_does_not_make_a_sleep_longer(slept: list[float]) -> None:
    await WorkflowRun(Book(), {"sleep": success_outcome(time.time() + 1_000_000)}).sleep(100)
    assert slept == [100]
