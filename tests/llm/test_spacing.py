"""An agent's model calls start apart from each other, one by one, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from annabelle.llm.call import CallSpacing, spacing_seconds
from annabelle.llm.providers import PROVIDERS, make_endpoint
from annabelle.llm.service import ModelService
from support import timing
from support.scripted_model import ScriptedServer
from support.scripted_model.service_under_test import Book, ask, settings_for

MakeService = Callable[..., ModelService]


class FakeTime:
    """A clock that only goes on while somebody sleeps, and notes who slept."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.now += seconds


@pytest.mark.req("CST-07")
async def test_several_chats_of_one_agent_are_spaced_one_by_one_in_the_order_they_came() -> None:
    time = FakeTime()
    spacing = CallSpacing(time, time.sleep)
    started: list[tuple[int, float]] = []

    async def chat(number: int) -> None:
        await spacing.wait(1.0)
        started.append((number, time.now))

    await asyncio.gather(*(chat(number) for number in range(4)))
    assert started == [(0, 100.0), (1, 101.0), (2, 102.0), (3, 103.0)]


@pytest.mark.req("CST-07")
async def test_only_the_rest_of_the_time_is_waited_for() -> None:
    time = FakeTime()
    spacing = CallSpacing(time, time.sleep)
    await spacing.wait(1.0)
    time.now += 0.75
    await spacing.wait(1.0)
    time.now += 5
    await spacing.wait(1.0)
    assert time.slept == [0.25]


@pytest.mark.req("CST-07")
async def test_a_wait_that_is_cancelled_lets_the_next_one_start() -> None:
    time = FakeTime()
    never = asyncio.Event()

    async def sleep(seconds: float) -> None:
        if seconds == 1.0 and not never.is_set():
            never.set()
            await asyncio.Event().wait()
        await time.sleep(seconds)

    spacing = CallSpacing(time, sleep)
    await spacing.wait(1.0)
    first = asyncio.create_task(spacing.wait(1.0))
    await never.wait()
    second = asyncio.create_task(spacing.wait(1.0))
    first.cancel()
    await asyncio.wait_for(second, timing.seconds(5))
    assert (first.cancelled() or first.cancelling() > 0, time.now) == (True, 101.0)


@pytest.mark.req("CST-07")
async def test_a_call_without_a_gap_never_waits_for_one_that_does() -> None:
    time = FakeTime()
    blocked = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await blocked.wait()
        time.now += seconds

    spacing = CallSpacing(time, sleep)
    await spacing.wait(1.0)
    waiting = asyncio.create_task(spacing.wait(1.0))
    await asyncio.sleep(0)
    await asyncio.wait_for(spacing.wait(0), timing.seconds(5))
    blocked.set()
    await asyncio.wait_for(waiting, timing.seconds(5))


@pytest.mark.req("CST-07")
@pytest.mark.parametrize(
    ("provider", "url", "set_to", "gap"),
    [
        ("groq", "", None, 1.0),
        ("compatible", "https://models.example/v1", None, 1.0),
        ("compatible", "http://127.0.0.1:8080/v1", None, 0.0),
        ("ollama", "http://192.168.1.5:11434", None, 0.0),
        ("groq", "", 0.0, 0.0),
        ("ollama", "http://127.0.0.1:11434", 2.5, 2.5),
    ],
)
def test_a_service_gets_a_second_and_a_model_on_this_machine_none_unless_it_is_set(
    provider: str, url: str, set_to: float | None, gap: float
) -> None:
    settings = settings_for(provider, url, llm_spacing_seconds=set_to)
    assert spacing_seconds(settings, make_endpoint(settings, PROVIDERS[provider])) == gap  # type: ignore[index]


@pytest.mark.req("CST-07")
async def test_the_service_makes_no_second_call_before_its_time_and_a_waiting_one_can_be_cancelled(
    model: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    service = make_service(settings_for("compatible", model.openai_url, llm_spacing_seconds=3600))
    await ask(service, "hello")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await ask(service, "again")
    assert (len(model.requests), len(book.reserved)) == (1, 1)
