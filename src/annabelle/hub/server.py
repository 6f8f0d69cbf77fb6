"""The HTTP server, and the signals that stop the hub."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

_TICK_SECONDS = 1.0
_STOP_SECONDS = 3


class _UvicornServer(uvicorn.Server):
    """Without uvicorn's signal handling, which would stop HTTP before the turns that need it, and its polling."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stop_requested = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        # uvicorn polls ten times a second, but an idle hub should sleep.
        second = 0
        while not await self.on_tick(second * 10) and not self.stop_requested.is_set():
            second += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stop_requested.wait(), _TICK_SECONDS)


class HttpServer:
    def __init__(self, app: ASGIApp, sock: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            loop="none",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
            timeout_keep_alive=30,
        )
        self._server, self._socket = _UvicornServer(config), sock
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when requests are answered."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                await self._task
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        self._server.stop_requested.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_STOP_SECONDS + 2)


_log = logging.getLogger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignal:
    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._hurried = asyncio.Event()

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    def _on_signal(self, number: int) -> None:
        _log.info("%s: stopping%s", signal.Signals(number).name, " in a hurry" if self._asked.is_set() else "")
        (self._hurried if self._asked.is_set() else self._asked).set()

    async def wait(self) -> None:
        await self._asked.wait()

    async def run_unless_stopped(self, work: Coroutine[None, None, None]) -> bool:
        """Run `work`, cancelled by the first signal. Returns whether it finished."""
        return await self._race(work, self._asked)

    async def run_unless_hurried(self, work: Coroutine[None, None, object]) -> bool:
        """Run `work`, cancelled by the second signal. Returns whether it finished."""
        return await self._race(work, self._hurried)

    @staticmethod
    async def _race(work: Coroutine[None, None, object], enough: asyncio.Event) -> bool:
        working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(enough.wait())
        try:
            await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if not working.done():
                working.cancel()
        if enough.is_set() and not (working.done() and not working.cancelled()):
            with contextlib.suppress(asyncio.CancelledError):
                await working
            return False
        await working
        return True
