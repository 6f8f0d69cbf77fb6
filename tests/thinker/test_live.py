"""A stop as the step that runs sees it: told to end, and allowed to tidy up; one that has not begun never does."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.errors import TurnCancelled
from annabelle.thinker.live_turn import LiveTurn, TurnStream
from support.timing import seconds


@pytest.mark.req("LOOP-09")
@pytest.mark.incident("I-27")
async def test_nothing_begins_once_the_turn_was_stopped() -> None:
    live, done = LiveTurn(TurnStream("s", "msg_1")), list[str]()

    async def job() -> None:
        done.append("begun")

    live.cancel()
    with pytest.raises(TurnCancelled):
        await live.run_cancellable(job())
    assert done == []


@pytest.mark.req("LOOP-09")
async def test_what_runs_has_tidied_up_when_the_stop_is_told() -> None:
    live, done, begun = LiveTurn(TurnStream("s", "msg_1")), list[str](), asyncio.Event()

    async def job() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(50):  # longer than it takes to tell the stop, in turns of the loop
                await asyncio.sleep(0)
            done.append("tidied")

    working = asyncio.create_task(live.run_cancellable(job()))
    await asyncio.wait_for(begun.wait(), seconds(10))
    live.cancel()
    with pytest.raises(TurnCancelled):
        await asyncio.wait_for(working, seconds(10))
    assert done == ["tidied"]
