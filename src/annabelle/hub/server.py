"""Serves the application with uvicorn, under the hub's own lifetime and signals."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator

import uvicorn
from starlette.types import ASGIApp

_TICK_SECONDS = 1.0
_STOP_SECONDS = 3


class _Server(uvicorn.Server):
    """Without uvicorn's signal handling, which would stop HTTP before the turns that need it, and its busy clock."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.leave = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        # uvicorn wakes ten times a second to look at a flag; an idle hub should sleep.
        second = 0
        while not await self.on_tick(second * 10) and not self.leave.is_set():
            second += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.leave.wait(), _TICK_SECONDS)


class HttpServer:
    """HTTP on one socket, from `start` to `stop`."""

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
        self._server, self._socket = _Server(config), sock
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when requests are answered."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                await self._task
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        self._server.leave.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_STOP_SECONDS + 2)
