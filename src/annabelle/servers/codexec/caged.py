"""A process in its cell: started, interrupted, and above all ended with everything it has started."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process

import anyio

from annabelle.core.errors import StorageTrouble, Unavailable
from annabelle.servers.codexec.isolation.layer import Cell, Layer
from annabelle.servers.codexec.isolation.spawning import spawn
from annabelle.servers.codexec.isolation.tree import kill_tree

_log = logging.getLogger(__name__)

_END_SECONDS = 10.0


class Caged:
    """One running cell. Whoever starts it kills it, also when it has ended by itself: that is what leaves nothing."""

    def __init__(self, layer: Layer, cell: Cell, process: Process) -> None:
        self._layer = layer
        self._cell = cell
        self._process = process

    @classmethod
    async def start(cls, layer: Layer, cell: Cell, *, talks: bool = False) -> Caged:
        """`talks` gives it a standard input to be written to; otherwise it reads the end at once."""
        try:
            process = await spawn(layer, cell, stdin=PIPE if talks else DEVNULL, stdout=PIPE, stderr=PIPE)
        except OSError as error:
            raise Unavailable(f"The code could not be started: {error.strerror}.") from error
        return cls(layer, cell, process)

    @property
    def cell(self) -> Cell:
        return self._cell

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdout(self) -> asyncio.StreamReader:
        return _there(self._process.stdout)

    @property
    def stderr(self) -> asyncio.StreamReader:
        return _there(self._process.stderr)

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def wait(self) -> int:
        return await self._process.wait()

    async def write(self, data: bytes) -> None:
        """Raises OSError when the program does not listen any more."""
        stdin = self._process.stdin
        if stdin is None:
            raise StorageTrouble("This program was started without an input.")
        stdin.write(data)
        await stdin.drain()

    def interrupt(self) -> bool:
        """Ask the program to stop what it does, as Ctrl-C would. False when this layer can not."""
        pid = None if self.ended else self._layer.interpreter(self.pid)
        if pid is None:
            return False
        try:
            os.kill(pid, signal.SIGINT)
        except OSError:
            return False
        return True

    async def kill(self) -> None:
        """End it with all it has started, and wait until it is gone; a cancelled call waits too, for a bounded time."""
        with anyio.move_on_after(_END_SECONDS, shield=True) as scope:
            if not self.ended:
                await self._stop()
                kill_tree(self.pid)
                await self._process.wait()
        if scope.cancelled_caught:
            _log.error("a run of code could not be ended within %.0f seconds", _END_SECONDS)

    async def _stop(self) -> None:
        command = self._layer.stop_command(self._cell)
        if command is None:
            return
        with contextlib.suppress(OSError):
            stopper = await asyncio.create_subprocess_exec(
                *command, env=self._layer.environment(self._cell), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
            )
            await stopper.wait()


def _there(stream: asyncio.StreamReader | None) -> asyncio.StreamReader:
    if stream is None:
        raise StorageTrouble("This program was started without an output.")
    return stream
