"""Starts each server as a process of its own, where there is no nursery. Behaviour is the same; it costs more."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from annabelle.core.errors import ServerDown
from annabelle.toolbox.processes.launch import Child, Ends, Launch, prepared
from annabelle.toolbox.processes.python import command, environment


class PlainLauncher:
    """Processes that die with the hub: by the kernel's word on Linux, by their closed input elsewhere."""

    def __init__(self, python_path: tuple[str, ...]) -> None:
        self._python_path = python_path
        self._running: dict[int, tuple[Child, asyncio.Task[None]]] = {}

    async def launch(self, order: Launch) -> Child:
        try:
            with prepared(order) as ends:
                process = self._start(order, ends)
        except OSError as error:
            raise ServerDown(f"{order.name} could not be started: {error.strerror}.") from error
        child = Child(
            process.pid,
            ends.stdin,
            ends.stdout,
            lambda number: _send(process, number),
            warden=sys.platform == "linux",
        )
        self._running[process.pid] = (child, asyncio.create_task(self._wait(process, child)))
        return child

    async def stop(self) -> None:
        running = list(self._running.values())
        await asyncio.gather(*(child.end(0) for child, _ in running))
        if running:
            await asyncio.wait([task for _, task in running], timeout=5)

    def _start(self, order: Launch, ends: Ends) -> subprocess.Popen[bytes]:
        stdin, stdout, log, parcel = ends.for_child
        own = str(os.getpid())
        if order.module is not None:
            line = command("annabelle.toolbox.nursery.solo", order.title, order.module, str(parcel), own)
        elif sys.platform == "linux":
            line = command("annabelle.toolbox.nursery.warden", order.name, str(parcel), own)
        else:
            line = list(order.parcel.argv)
        inherits = order.module is not None or sys.platform == "linux"
        return subprocess.Popen(
            line,
            env=environment(self._python_path) if inherits else order.parcel.environment,
            stdin=stdin,
            stdout=stdout,
            stderr=log,
            pass_fds=(parcel,) if inherits else (),
            cwd=order.parcel.folder,
            start_new_session=True,
        )

    async def _wait(self, process: subprocess.Popen[bytes], child: Child) -> None:
        if hasattr(os, "pidfd_open"):
            await _until_readable(os.pidfd_open(process.pid))
            code = process.wait()
        else:
            code = await asyncio.to_thread(process.wait)
        self._running.pop(process.pid, None)
        child.gone(code)


async def _until_readable(handle: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def _send(process: subprocess.Popen[bytes], number: int) -> None:
    if sys.platform == "linux":
        process.send_signal(number)
    else:  # no warden here: the group is what the server started
        os.killpg(process.pid, number)
