"""A live interpreter in a sandbox that runs one piece of code after another."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import anyio

from annabelle.core.errors import Unavailable
from annabelle.servers.codexec.execution import MOST_OUTPUT_BYTES, OutputBuffer
from annabelle.servers.codexec.isolation.backend import SandboxBackend, SandboxSpec
from annabelle.servers.codexec.sandboxed_process import (
    WATCH_SECONDS,
    DiskQuota,
    KillReason,
    LimitWatch,
    SandboxedProcess,
)
from annabelle.servers.kit import current_call

_MOST_ANSWER_BYTES = 1_000_000


class DriverFrames:
    """Splits a stream into output and answers. An answer follows a random mark, up to the end of its line."""

    def __init__(self, mark: bytes, output: Callable[[bytes], None], answer: Callable[[bytes], None]) -> None:
        self._mark = mark
        self._output = output
        self._answer = answer
        self._pending = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes. A mark may be split between two calls."""
        self._pending += data
        while self._pending:
            start = self._pending.find(self._mark)
            if start < 0:
                held = self._beginning_of_mark()
                self._print(len(self._pending) - held)
                return
            self._print(start)
            end = self._pending.find(b"\n")
            if end < 0 and len(self._pending) < _MOST_ANSWER_BYTES:
                return
            end = len(self._pending) if end < 0 else end
            line, self._pending = self._pending[len(self._mark) : end], self._pending[end + 1 :]
            self._answer(line)

    def close(self) -> None:
        """End of the stream: pass on what looked like the beginning of a mark."""
        self._print(len(self._pending))

    def _print(self, count: int) -> None:
        if count:
            self._output(self._pending[:count])
            self._pending = self._pending[count:]

    def _beginning_of_mark(self) -> int:
        longest = min(len(self._mark) - 1, len(self._pending))
        return next((size for size in range(longest, 0, -1) if self._mark.startswith(self._pending[-size:])), 0)


def read_answer(line: bytes) -> dict[str, object]:
    """Parse an answer of the driver. Empty if the code has tampered with it."""
    try:
        answer: object = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, object]", answer) if isinstance(answer, dict) else {}


START_SECONDS = 30.0
OBEY_SECONDS = 3.0
"""Time for interrupted code to stop before the session is ended."""

_CHUNK = 1 << 16
_MOST_ANSWERS = 100
"""The driver answers once per request, but code that has found its word can send any number of answers."""


@dataclass(frozen=True, slots=True)
class InterpreterReply:
    """Result of one piece of code. `gone` means that the interpreter has ended."""

    stdout: str
    stderr: str
    seconds: float
    value: str | None = None
    error: str | None = None
    interrupted: bool = False
    killed: KillReason | None = None
    gone: bool = False


class SessionInterpreter:
    """A live interpreter. It runs one piece of code at a time."""

    def __init__(self, process: SandboxedProcess, disk: DiskQuota | None) -> None:
        self._process = process
        self._watch = LimitWatch(process, disk)
        self._word = secrets.token_hex(16)
        self._out, self._err = OutputBuffer(), OutputBuffer()
        self._answers: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        self._errors_through: asyncio.Queue[None] = asyncio.Queue()
        self._readers: list[asyncio.Task[None]] = []
        self._gone = False
        self.killed: KillReason | None = None

    @classmethod
    async def start(cls, backend: SandboxBackend, sandbox: SandboxSpec, disk: DiskQuota | None) -> SessionInterpreter:
        interpreter = cls(await SandboxedProcess.start(backend, sandbox, talks=True), disk)
        try:
            interpreter._start_readers()
            await interpreter._process.write_input(f"{interpreter._word}\n".encode())
            async with asyncio.timeout(START_SECONDS):
                ready = await interpreter._answer()
            if ready is None:
                raise Unavailable("The session did not start: the interpreter ended at once.")
        except (OSError, TimeoutError) as error:
            await interpreter.close()
            raise Unavailable("The session did not start in time.", hint="Try again.") from error
        except BaseException:
            await interpreter.close()
            raise
        return interpreter

    @property
    def alive(self) -> bool:
        return not (self._gone or self._process.ended or self.killed)

    async def run(self, code: str, seconds: float) -> InterpreterReply:
        """Run code. Cancelling interrupts it; if it does not stop, the session is ended."""
        started = time.monotonic()
        asking = asyncio.ensure_future(self._ask(code))
        try:
            answer = await self._until_answered(asking, started + seconds)
        except asyncio.CancelledError:
            await self._give_up(asking)
            raise
        if answer is None:
            self._gone = True
            await asyncio.wait(self._readers, timeout=OBEY_SECONDS)  # its last output is still in the pipes
        spent = time.monotonic() - started
        out, self._out = self._out.decode(), OutputBuffer()
        err, self._err = self._err.decode(), OutputBuffer()
        if answer is None:
            return InterpreterReply(out, err, spent, killed=self.killed, gone=True)
        value, error = answer.get("value"), answer.get("error")
        return InterpreterReply(
            out,
            err,
            spent,
            value=value if isinstance(value, str) else None,
            error=error if isinstance(error, str) else None,
            interrupted=answer.get("interrupted") is True,
        )

    async def check_limits(self) -> None:
        """Between calls: end it if background work of the code exceeds the limits."""
        if self.alive:
            await self._end_if(await self._watch.check() or self._output_excess())

    async def close(self) -> None:
        self.killed = self.killed or "closed"
        await self._process.kill()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def _ask(self, code: str) -> dict[str, object] | None:
        try:
            await self._process.write_input(json.dumps({"code": code}).encode() + b"\n")
        except OSError:
            return None
        return await self._answer()

    async def _answer(self) -> dict[str, object] | None:
        """The driver's next answer, or None if the interpreter has ended."""
        answer = await self._answers.get()
        if answer.get("end") is True:
            self._answers.put_nowait(answer)
            return None
        await self._errors_through.get()
        return answer

    async def _until_answered(
        self, asking: asyncio.Future[dict[str, object] | None], deadline: float
    ) -> dict[str, object] | None:
        call, started = current_call(), time.monotonic()
        told, asked_to_stop = started, False
        while True:
            wait = max(0.0, min(WATCH_SECONDS, deadline - time.monotonic()))
            await asyncio.wait([asking], timeout=wait)
            if asking.done():
                return asking.result()
            now = time.monotonic()
            await self._end_if(self._output_excess() or await self._watch.check())
            if self.killed is not None:
                return await asking
            if now >= deadline:
                if asked_to_stop or not self._process.interrupt():
                    await self._end_if("time")
                    return await asking
                asked_to_stop, deadline = True, now + OBEY_SECONDS
            if now - told >= 1.0:
                told = now
                await call.progress(round(now - started, 1), round(deadline - started, 1), "running")

    async def _give_up(self, asking: asyncio.Future[dict[str, object] | None]) -> None:
        """Drop the pending answer, so that it is not taken for the answer to the next call."""
        with anyio.CancelScope(shield=True):  # each step is bounded
            if self._process.interrupt():
                await asyncio.wait([asking], timeout=OBEY_SECONDS)
            if not asking.done():
                await self._end_if("closed")
                asking.cancel()
        self._out, self._err = OutputBuffer(), OutputBuffer()

    async def _end_if(self, reason: KillReason | None) -> None:
        if reason is not None and self.killed is None:
            self.killed = reason
            await self._process.kill()

    def _output_excess(self) -> KillReason | None:
        written = self._out.total + self._err.total
        waiting = max(self._answers.qsize(), self._errors_through.qsize())
        return "output" if written > MOST_OUTPUT_BYTES or waiting > _MOST_ANSWERS else None

    def _start_readers(self) -> None:
        mark = b"\x1e" + self._word.encode()
        out = DriverFrames(
            mark, lambda data: self._out.feed(data), lambda line: self._answers.put_nowait(read_answer(line))
        )
        err = DriverFrames(mark, lambda data: self._err.feed(data), lambda line: self._errors_through.put_nowait(None))
        self._readers = [
            asyncio.ensure_future(self._read(self._process.stdout, out)),
            asyncio.ensure_future(self._read(self._process.stderr, err)),
        ]

    async def _read(self, stream: asyncio.StreamReader, frames: DriverFrames) -> None:
        while chunk := await stream.read(_CHUNK):
            frames.feed(chunk)
        frames.close()
        if stream is self._process.stdout:
            self._answers.put_nowait({"end": True})
        else:
            self._errors_through.put_nowait(None)
