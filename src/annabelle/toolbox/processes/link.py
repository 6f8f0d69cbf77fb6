"""The hub's side of one nursery: forks are asked for here, and the ends of children are seen here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
from typing import cast

from annabelle.core.errors import ServerDown
from annabelle.toolbox.nursery import talk
from annabelle.toolbox.processes.launch import Child, Launch, prepared
from annabelle.toolbox.processes.warm import WarmNursery

_log = logging.getLogger(__name__)
_REPORT_SECONDS = 0.25
"""How long the exit code may come after the exit itself was seen."""

_FORK_SECONDS = 10.0


class NurseryLink:
    """One living nursery. When it is gone `lost` is set, and this object is of no more use."""

    def __init__(self, warm: WarmNursery) -> None:
        self._process, self._control = warm.process, warm.control
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._asked: dict[int, asyncio.Future[tuple[int, int]]] = {}
        self._codes: dict[int, int] = {}
        self._number = 0
        self.lost = asyncio.Event()
        self._loop.add_reader(self._control.fileno(), self._on_message)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self, seconds: float) -> None:
        """Wait until everything is imported."""
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._ready)
        except TimeoutError as error:
            raise ServerDown("The nursery did not become ready in time.") from error

    async def fork(self, order: Launch) -> Child:
        self._number += 1
        number = self._number
        answer: asyncio.Future[tuple[int, int]] = self._loop.create_future()
        self._asked[number] = answer
        try:
            with prepared(order) as ends:
                kind = "warden" if order.module is None else "server"
                message: talk.Message = {"op": kind, "id": number, "name": order.title, "module": order.module}
                talk.send(self._control, message, ends.for_child)
                async with asyncio.timeout(_FORK_SECONDS):
                    pid, handle = await answer
        except BaseException as error:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                _disown(answer.result()[1])  # it came in the very moment we stopped waiting
            if not isinstance(error, OSError | TimeoutError):
                raise
            raise ServerDown(f"The nursery could not start {order.name}: {error or 'no answer'}.") from error
        finally:
            self._asked.pop(number, None)
        child = Child(
            pid,
            ends.stdin,
            ends.stdout,
            lambda number: signal.pidfd_send_signal(handle, number),
            warden=order.module is None,
        )
        return self._watch(child, handle)

    async def stop(self) -> None:
        """Hang up; the nursery then kills all below it and ends."""
        self._lose("it was stopped")
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, 8)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait, 5)

    def _watch(self, child: Child, handle: int) -> Child:
        def report() -> None:
            os.close(handle)
            child.gone(self._codes.pop(child.pid, None))

        def seen() -> None:
            self._loop.remove_reader(handle)
            if child.pid in self._codes or self.lost.is_set():
                report()
            else:
                self._loop.call_later(_REPORT_SECONDS, report)

        self._loop.add_reader(handle, seen)
        return child

    def _on_message(self) -> None:
        try:
            received = talk.receive(self._control)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(str(error))
            return
        if received is None:
            self._lose("it ended")
            return
        message, descriptors = received
        if message["op"] == "ready":
            if message["failed"]:
                _log.warning("the nursery could not import %s", message["failed"])
            if not self._ready.done():
                self._ready.set_result(None)
        elif message["op"] == "exited":
            self._codes[cast("int", message["pid"])] = cast("int", message["code"])
        else:
            answer = self._asked.get(cast("int", message["id"]))
            if answer is not None and not answer.done():
                answer.set_result((cast("int", message["pid"]), descriptors[0]))
            else:  # nobody waits for it any more, so nobody would ever end it
                _disown(descriptors[0])

    def _lose(self, reason: str) -> None:
        if self.lost.is_set():
            return
        self.lost.set()
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        trouble = ServerDown(f"The nursery is gone: {reason}.")
        for waiting in (self._ready, *self._asked.values()):
            if not waiting.done():
                waiting.set_exception(trouble)
                waiting.exception()  # often nobody waits for it any more


def _disown(handle: int) -> None:
    """End a child nobody will ever speak with."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)
