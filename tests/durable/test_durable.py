"""The one door to the durable engine, in one process, on both databases."""

from __future__ import annotations

import asyncio
import logging

import pytest

from annabelle.core.errors import (
    AnnabelleError,
    Conflict,
    NotFound,
    ProviderRefused,
    TurnCancelled,
    Unavailable,
)
from annabelle.core.tools import JsonObject
from annabelle.durable import engine as module
from annabelle.durable.engine import Durable, PendingWorkflow
from support.timing import seconds


class Story:
    """A workflow of two steps that waits in between until it is let go."""

    def __init__(self, durable: Durable) -> None:
        self.done: list[str] = []
        self.waiting = asyncio.Event()
        self.go = asyncio.Event()
        self._durable = durable
        durable.workflow("story")(self.tell)

    async def tell(self, argument: JsonObject) -> JsonObject:
        await self._durable.step("first", lambda: self._do("first"))
        await self._durable.step("second", self._second)
        return {"told": argument["name"]}

    async def _second(self) -> object:
        self.waiting.set()
        await self.go.wait()
        return await self._do("second")

    async def _do(self, name: str) -> object:
        self.done.append(name)
        return None


@pytest.mark.req("DUR-01", "DUR-02")
async def test_a_workflow_runs_by_itself_and_its_result_is_kept(make_durable) -> None:
    durable = make_durable()
    story = Story(durable)
    story.go.set()
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    assert await durable.result("w1", 10) == {"told": "ada"}
    assert await durable.status("w1") == "done"
    await durable.start("story", "w1", {"name": "bob"})
    assert await durable.result("w1", 10) == {"told": "ada"}
    assert story.done == ["first", "second"]


@pytest.mark.req("DUR-02")
async def test_closing_interrupts_what_runs_and_the_next_launch_goes_on_with_it(make_durable) -> None:
    durable = make_durable()
    before = Story(durable)
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    await asyncio.wait_for(before.waiting.wait(), seconds(10))
    await durable.close()
    await durable.close()
    again = make_durable()
    after = Story(again)
    after.go.set()
    await again.launch()
    assert await again.result("w1", 20) == {"told": "ada"}
    assert (before.done, after.done) == (["first"], ["second"])


async def test_recovered_workflows_run_on_the_main_loop(make_durable) -> None:
    durable = make_durable()
    await_loop: list[asyncio.AbstractEventLoop] = []
    story = Story(durable)
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    await asyncio.wait_for(story.waiting.wait(), seconds(10))
    await durable.close()
    again = make_durable()

    @again.workflow("story")
    async def tell(argument: JsonObject) -> JsonObject:
        await_loop.append(asyncio.get_running_loop())
        return {}

    await again.launch()
    await again.result("w1", 20)
    assert await_loop == [asyncio.get_running_loop()]


async def test_the_loop_has_threads_again_after_closing(make_durable) -> None:
    durable = make_durable()
    await durable.launch()
    await durable.close()
    assert await asyncio.to_thread(lambda: "works") == "works"


async def test_an_error_that_ends_a_workflow_is_raised_again_for_whoever_asks(make_durable) -> None:
    durable = make_durable()

    @durable.workflow("refused")
    async def refused(argument: JsonObject) -> JsonObject:
        raise ProviderRefused("wrong key", hint="fix it")

    await durable.launch()
    await durable.start("refused", "w1", {})
    for _ in range(2):
        with pytest.raises(ProviderRefused, match="wrong key") as caught:
            await durable.result("w1", 10)
        assert caught.value.hint == "fix it"
    assert await durable.status("w1") == "failed"


async def test_a_mistake_in_a_workflow_ends_it_with_a_traceback_in_the_log(
    make_durable, caplog: pytest.LogCaptureFixture
) -> None:
    durable = make_durable()

    @durable.workflow("broken")
    async def broken(argument: JsonObject) -> JsonObject:
        return {"x": argument["missing"]}

    await durable.launch()
    await durable.start("broken", "w1", {})
    with pytest.raises(AnnabelleError, match="failed unexpectedly: KeyError"):
        await durable.result("w1", 10)
    assert any(record.exc_info for record in caplog.records if record.name.startswith("annabelle.durable"))


@pytest.mark.incident("I-27")
async def test_a_cancelled_workflow_stops_at_once_and_stays_stopped(make_durable) -> None:
    durable = make_durable()
    story = Story(durable)
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    await asyncio.wait_for(story.waiting.wait(), seconds(10))
    await durable.cancel("w1")
    with pytest.raises(TurnCancelled):
        await durable.result("w1", 10)
    await durable.close()
    again = make_durable()
    after = Story(again)
    after.go.set()
    await again.launch()
    await again.start("story", "w1", {"name": "ada"})
    assert await again.status("w1") == "cancelled"
    assert await again.pending() == []
    assert (story.done, after.done) == (["first"], [])


async def test_cancelling_what_has_ended_changes_nothing(make_durable) -> None:
    durable = make_durable()
    story = Story(durable)
    story.go.set()
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    await durable.result("w1", 10)
    await durable.cancel("w1")
    assert await durable.status("w1") == "done"


async def test_pending_workflows_are_listed_in_order(make_durable) -> None:
    durable = make_durable()
    Story(durable)
    await durable.launch()
    for number in range(3):
        await durable.start("story", f"w{number}", {"name": "x"})
    assert await durable.pending() == [PendingWorkflow(f"w{number}", "story") for number in range(3)]


async def test_a_result_that_takes_too_long_says_so(make_durable) -> None:
    durable = make_durable()
    Story(durable)
    await durable.launch()
    await durable.start("story", "w1", {"name": "x"})
    with pytest.raises(Unavailable, match=r"has not ended after 0\.05 s"):
        await durable.result("w1", 0.05)


async def test_what_was_never_begun_is_not_found(make_durable) -> None:
    durable = make_durable()
    await durable.launch()
    assert await durable.status("nothing") is None
    with pytest.raises(NotFound):
        await durable.result("nothing", 1)
    with pytest.raises(NotFound):
        await durable.signal("nothing", "topic", 1)


async def test_a_signal_wakes_who_waits_and_is_kept_for_who_will(make_durable) -> None:
    durable = make_durable()

    @durable.workflow("asks")
    async def asks(argument: JsonObject) -> JsonObject:
        return {"first": await durable.wait("yes?", 20), "second": await durable.wait("sure?", 20)}

    await durable.launch()
    await durable.start("asks", "w1", {})
    await durable.signal("w1", "sure?", {"answer": True})
    await durable.signal("w1", "yes?", "yes")
    assert await durable.result("w1", 20) == {"first": "yes", "second": {"answer": True}}


async def test_waiting_for_nothing_ends_with_nothing(make_durable) -> None:
    durable = make_durable()

    @durable.workflow("asks")
    async def asks(argument: JsonObject) -> JsonObject:
        return {"answer": await durable.wait("yes?", 0.05)}

    await durable.launch()
    await durable.start("asks", "w1", {})
    assert await durable.result("w1", 20) == {"answer": None}


async def test_a_workflow_may_begin_another_which_is_its_own(make_durable) -> None:
    durable = make_durable()

    @durable.workflow("outer")
    async def outer(argument: JsonObject) -> JsonObject:
        await durable.start("inner", "w2", {"from": "outer"})
        return {}

    @durable.workflow("inner")
    async def inner(argument: JsonObject) -> JsonObject:
        return {"heard": await durable.step("hear", lambda: asyncio.sleep(0, argument["from"]))}

    await durable.launch()
    await durable.start("outer", "w1", {})
    await durable.result("w1", 10)
    assert await durable.result("w2", 10) == {"heard": "outer"}


async def test_an_id_can_not_be_used_for_another_workflow(make_durable) -> None:
    durable = make_durable()
    Story(durable).go.set()

    @durable.workflow("other")
    async def other(argument: JsonObject) -> JsonObject:
        return {}

    await durable.launch()
    await durable.start("other", "w1", {})
    await durable.result("w1", 10)
    with pytest.raises(Conflict):
        await durable.start("story", "w1", {"name": "x"})


async def test_nothing_works_before_the_launch_or_after_the_end(make_durable) -> None:
    durable = make_durable()
    with pytest.raises(Unavailable):
        await durable.start("story", "w1", {})
    with pytest.raises(RuntimeError, match="inside a workflow"):
        await durable.sleep(1)
    await durable.launch()
    with pytest.raises(RuntimeError, match="after the launch"):
        durable.workflow("late")(lambda argument: argument)
    await durable.close()
    with pytest.raises(Unavailable):
        await durable.status("w1")


async def test_workflows_that_ended_long_ago_are_forgotten(make_durable, monkeypatch: pytest.MonkeyPatch) -> None:
    durable = make_durable()
    story = Story(durable)
    await durable.launch()
    await durable.start("story", "pending", {"name": "x"})
    await asyncio.wait_for(story.waiting.wait(), seconds(10))
    await durable.start("story", "ended", {"name": "x"})
    await durable.cancel("ended")
    await durable.close()
    monkeypatch.setattr(module, "KEEP_DAYS", -1)
    again = make_durable()
    Story(again)
    await again.launch()
    async with asyncio.timeout(seconds(20)):
        while await again.status("ended") is not None:  # noqa: ASYNC110  it ends in the database
            await asyncio.sleep(0.01)
    assert await again.status("pending") == "running"


def test_the_engines_log_goes_through_ours(make_durable, capfd: pytest.CaptureFixture[str]) -> None:
    make_durable()
    logging.getLogger("dbos").error("Asyncio task cancelled for workflow or step x")
    assert capfd.readouterr() == ("", "")


@pytest.mark.req("DUR-01")
async def test_a_start_whose_caller_leaves_is_not_left_half_way(make_durable) -> None:
    durable = make_durable()
    story = Story(durable)
    story.go.set()
    await durable.launch()
    leaving = asyncio.create_task(durable.start("story", "w", {"name": "x"}))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await asyncio.wait_for(story.waiting.wait(), seconds(10))
    assert await durable.result("w", 10) == {"told": "x"}
