"""Runs one cell from start to end, within its time, memory and output, and tells what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from annabelle.servers.codexec.caged import Caged
from annabelle.servers.codexec.disk import Disk
from annabelle.servers.codexec.isolation.layer import Cell, Layer
from annabelle.servers.codexec.tape import Tape
from annabelle.servers.codexec.watch import EVERY_SECONDS, Killed, Watch
from annabelle.servers.kit import current_call

MOST_OUTPUT_BYTES = 20_000_000
"""Past this a program is ended: nobody reads it, and it costs time to throw away."""

_CHUNK = 1 << 16
_DRAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `exit_code` is None when it did not end by itself, and `killed` says why."""

    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float
    killed: Killed | None = None

    @property
    def timed_out(self) -> bool:
        return self.killed == "time"


async def run_cell(layer: Layer, cell: Cell, seconds: float, disk: Disk | None = None) -> Outcome:
    """Run it to its end. Cancelled or not, nothing of it is left afterwards."""
    started = time.monotonic()
    caged = await Caged.start(layer, cell)
    out, err = Tape(), Tape()
    readers = [
        asyncio.ensure_future(_record(stream, tape)) for stream, tape in ((caged.stdout, out), (caged.stderr, err))
    ]
    try:
        killed = await _until_over(caged, Watch(caged, disk), started + seconds, (out, err))
    finally:
        await caged.kill()
        await _finish(readers)
    code = None if killed else await caged.wait()
    return Outcome(code, out.text(), err.text(), time.monotonic() - started, killed)


async def _until_over(caged: Caged, watch: Watch, deadline: float, tapes: tuple[Tape, Tape]) -> Killed | None:
    ending = asyncio.ensure_future(caged.wait())
    started = told = time.monotonic()
    call = current_call()
    try:
        while True:
            now = time.monotonic()
            await asyncio.wait([ending], timeout=max(0.0, min(EVERY_SECONDS, deadline - now)))
            if ending.done():
                return None
            now = time.monotonic()
            if now >= deadline:
                return "time"
            if sum(tape.total for tape in tapes) > MOST_OUTPUT_BYTES:
                return "output"
            reason = await watch.look()
            if reason is not None:
                return reason
            if now - told >= 1.0:
                told = now
                await call.progress(round(now - started, 1), round(deadline - started, 1), "running")
    finally:
        ending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ending


async def _record(stream: asyncio.StreamReader, tape: Tape) -> None:
    """To the very end, whatever it costs: the end of a process is not noticed while its pipes are full."""
    while chunk := await stream.read(_CHUNK):
        tape.feed(chunk)


async def _finish(readers: Sequence[asyncio.Future[None]]) -> None:
    """What was written before the end is still in the pipes."""
    _, late = await asyncio.wait(readers, timeout=_DRAIN_SECONDS)
    for reader in late:
        reader.cancel()
