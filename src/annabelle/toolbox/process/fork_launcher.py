"""Starts processes by forking them from the fork server, and replaces a fork server that died."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
from pathlib import Path
from typing import cast

from annabelle.core.errors import ServerDown
from annabelle.toolbox.process import control_socket
from annabelle.toolbox.process.forkserver_process import ForkServerProcess, can_use_forkserver, start_forkserver
from annabelle.toolbox.process.launcher import (
    ChildProcess,
    LaunchRequest,
    PlainLauncher,
    ProcessLauncher,
    prepare_pipes,
)

_log = logging.getLogger(__name__)
_REPORT_SECONDS = 0.25
"""How much later than the exit itself its code may arrive."""

_FORK_SECONDS = 10.0


class ForkServerLink:
    """The connection to one fork server. `lost` is set when it ends, and the object cannot be used after that."""

    def __init__(self, started: ForkServerProcess) -> None:
        self._process, self._control = started.process, started.control
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

    async def wait_ready(self, seconds: float) -> None:
        """Wait until everything is imported."""
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._ready)
        except TimeoutError as error:
            raise ServerDown("The fork server did not become ready in time.") from error

    async def fork(self, request: LaunchRequest) -> ChildProcess:
        self._number += 1
        number = self._number
        answer: asyncio.Future[tuple[int, int]] = self._loop.create_future()
        self._asked[number] = answer
        try:
            with prepare_pipes(request) as ends:
                kind = "warden" if request.module is None else "server"
                message: control_socket.ControlMessage = {
                    "op": kind,
                    "id": number,
                    "name": request.title,
                    "module": request.module,
                }
                control_socket.send(self._control, message, ends.for_child)
                async with asyncio.timeout(_FORK_SECONDS):
                    pid, handle = await answer
        except BaseException as error:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                _kill_unclaimed(answer.result()[1])  # the answer arrived just as we stopped waiting
            if not isinstance(error, OSError | TimeoutError):
                raise
            raise ServerDown(f"The fork server could not start {request.name}: {error or 'no answer'}.") from error
        finally:
            self._asked.pop(number, None)
        child = ChildProcess(
            pid,
            ends.stdin,
            ends.stdout,
            lambda number: signal.pidfd_send_signal(handle, number),
            reaper=request.module is None,
        )
        return self._watch(child, handle)

    async def stop(self) -> None:
        """Close the connection; the fork server then kills its descendants and ends."""
        self._mark_lost("it was stopped")
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, 8)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait, 5)

    def _watch(self, child: ChildProcess, handle: int) -> ChildProcess:
        def report() -> None:
            os.close(handle)
            child.set_exited(self._codes.pop(child.pid, None))

        def on_exit() -> None:
            self._loop.remove_reader(handle)
            if child.pid in self._codes or self.lost.is_set():
                report()
            else:
                self._loop.call_later(_REPORT_SECONDS, report)

        self._loop.add_reader(handle, on_exit)
        return child

    def _on_message(self) -> None:
        try:
            received = control_socket.receive(self._control)
        except BlockingIOError:
            return
        except OSError as error:
            self._mark_lost(str(error))
            return
        if received is None:
            self._mark_lost("it ended")
            return
        message, descriptors = received
        if message["op"] == "ready":
            if message["failed"]:
                _log.warning("the fork server could not import %s", message["failed"])
            if not self._ready.done():
                self._ready.set_result(None)
        elif message["op"] == "exited":
            self._codes[cast("int", message["pid"])] = cast("int", message["code"])
        else:
            answer = self._asked.get(cast("int", message["id"]))
            if answer is not None and not answer.done():
                answer.set_result((cast("int", message["pid"]), descriptors[0]))
            else:  # nobody waits for it, so nobody would end it
                _kill_unclaimed(descriptors[0])

    def _mark_lost(self, reason: str) -> None:
        if self.lost.is_set():
            return
        self.lost.set()
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        trouble = ServerDown(f"The fork server is gone: {reason}.")
        for waiting in (self._ready, *self._asked.values()):
            if not waiting.done():
                waiting.set_exception(trouble)
                waiting.exception()  # marks it as retrieved: often nobody awaits it


def _kill_unclaimed(handle: int) -> None:
    """Kill a child that nobody waits for."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)


_READY_SECONDS = 60.0


class ForkLauncher:
    """Runs one fork server at a time. Its children end with it; their supervisors start them again from a new one."""

    def __init__(
        self,
        preload: tuple[str, ...],
        python_path: tuple[str, ...],
        log: Path,
        started: ForkServerProcess | None = None,
    ) -> None:
        self._preload, self._python_path, self._log_file = preload, python_path, log
        self._started_early = started
        self._link: ForkServerLink | None = None
        self._starting = asyncio.Lock()
        self._stopped = False

    @property
    def pid(self) -> int | None:
        return self._link.pid if self._link is not None else None

    async def launch(self, request: LaunchRequest) -> ChildProcess:
        link = await self._running_link()
        return await link.fork(request)

    async def stop(self) -> None:
        self._stopped = True
        async with self._starting:
            if self._link is None and self._started_early is not None:
                self._link = ForkServerLink(self._started_early)
            if self._link is not None:
                await self._link.stop()
                self._link = None

    async def _running_link(self) -> ForkServerLink:
        async with self._starting:
            if self._link is not None and self._link.lost.is_set():
                _log.warning("the fork server (process %d) died; starting a new one", self._link.pid)
                await self._link.stop()
                self._link = None
            if self._link is None and not self._stopped:
                started = self._started_early or start_forkserver(self._preload, self._python_path, self._log_file)
                self._started_early = None
                self._link = ForkServerLink(started)
            link = self._link
            if link is None:
                raise ServerDown("Annabelle is being stopped.")
        await link.wait_ready(_READY_SECONDS)
        return link


def choose_launcher(
    fork: bool,
    preload: tuple[str, ...],
    python_path: tuple[str, ...],
    log: Path,
    started: ForkServerProcess | None = None,
) -> ProcessLauncher:
    """`started` is a fork server that was started early, with these modules."""
    if fork and can_use_forkserver():
        return ForkLauncher(preload, python_path, log, started)
    return PlainLauncher(python_path)
