"""Blocking work of a cancelled call."""

from __future__ import annotations

import threading

import anyio
import pytest

from annabelle.core.errors import TurnCancelled
from annabelle.servers.kit import StopSign, in_thread


@pytest.mark.req("SRV-ALL")
async def test_a_cancelled_call_ends_only_after_its_thread_has() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(stop: StopSign) -> None:
        begun.set()
        while not stop.stopped:
            pass
        ended.set()

    async with anyio.create_task_group() as tg:
        tg.start_soon(in_thread, work)
        assert await anyio.to_thread.run_sync(begun.wait, 10)
        tg.cancel_scope.cancel()
    assert ended.is_set()


async def test_the_sign_stops_work_where_it_looks() -> None:
    sign = StopSign()
    sign.check()
    sign.stop()
    with pytest.raises(TurnCancelled):
        sign.check()


async def test_what_the_work_raises_comes_back() -> None:
    def work(stop: StopSign) -> None:
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        await in_thread(work)
