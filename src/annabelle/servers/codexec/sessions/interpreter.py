"""An interpreter in its cell that takes one piece of code after the other."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from dataclasses import dataclass

import anyio

from annabelle.core.errors import Unavailable
from annabelle.servers.codexec.caged import Caged
from annabelle.servers.codexec.disk import Disk
from annabelle.servers.codexec.isolation.layer import Cell, Layer
from annabelle.servers.codexec.running import MOST_OUTPUT_BYTES
from annabelle.servers.codexec.sessions.frames import Frames, read_answer
from annabelle.servers.codexec.tape import Tape
from annabelle.servers.codexec.watch import EVERY_SECONDS, Killed, Watch
from annabelle.servers.kit import current_call

START_SECONDS = 30.0
OBEY_SECONDS = 3.0
"""How long interrupted code may take to stop before the whole session is ended."""

_CHUNK = 1 << 16
_MOST_ANSWERS = 100
"""The driver answers each piece of code once. Code that has found the driver's word can answer without end."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one piece of code. `gone` means that the interpreter did not survive it."""

    stdout: str
    stderr: str
    seconds: float
    value: str | None = None
    error: str | None = None
    interrupted: bool = False
    killed: Killed | None = None
    gone: bool = False


class Interpreter:
    """One live interpreter. Pieces of code are run one at a time: whoever comes second waits."""

    def __init__(self, caged: Caged, disk: Disk | None) -> None:
        self._caged = caged
        self._watch = Watch(caged, disk)
        self._word = secrets.token_hex(16)
        self._out, self._err = Tape(), Tape()
        self._answers: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        self._errors_through: asyncio.Queue[None] = asyncio.Queue()
        self._readers: list[asyncio.Task[None]] = []
        self._gone = False
        self.killed: Killed | None = None

    @classmethod
    async def start(cls, layer: Layer, cell: Cell, disk: Disk | None) -> Interpreter:
        """Ready when it has said so; what it complained about otherwise is in the error."""
        interpreter = cls(await Caged.start(layer, cell, talks=True), disk)
        try:
            interpreter._listen()
            await interpreter._caged.write(f"{interpreter._word}\n".encode())
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
        return not (self._gone or self._caged.ended or self.killed)

    async def run(self, code: str, seconds: float) -> Reply:
        """Run a piece of code. A cancelled call interrupts it; if it does not obey, the session is ended."""
        started = time.monotonic()
        asking = asyncio.ensure_future(self._ask(code))
        try:
            answer = await self._until_answered(asking, started + seconds)
        except asyncio.CancelledError:
            await self._give_up(asking)
            raise
        if answer is None:
            self._gone = True
            await asyncio.wait(self._readers, timeout=OBEY_SECONDS)  # its last words are still in the pipes
        spent = time.monotonic() - started
        out, self._out = self._out.text(), Tape()
        err, self._err = self._err.text(), Tape()
        if answer is None:
            return Reply(out, err, spent, killed=self.killed, gone=True)
        value, error = answer.get("value"), answer.get("error")
        return Reply(
            out,
            err,
            spent,
            value=value if isinstance(value, str) else None,
            error=error if isinstance(error, str) else None,
            interrupted=answer.get("interrupted") is True,
        )

    async def look(self) -> None:
        """Between calls: end it if what it left running has grown too large."""
        if self.alive:
            await self._end_if(await self._watch.look() or self._flood())

    async def close(self) -> None:
        self.killed = self.killed or "closed"
        await self._caged.kill()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def _ask(self, code: str) -> dict[str, object] | None:
        try:
            await self._caged.write(json.dumps({"code": code}).encode() + b"\n")
        except OSError:
            return None
        return await self._answer()

    async def _answer(self) -> dict[str, object] | None:
        """The driver's next answer; None when the interpreter is gone."""
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
            wait = max(0.0, min(EVERY_SECONDS, deadline - time.monotonic()))
            await asyncio.wait([asking], timeout=wait)
            if asking.done():
                return asking.result()
            now = time.monotonic()
            await self._end_if(self._flood() or await self._watch.look())
            if self.killed is not None:
                return await asking
            if now >= deadline:
                if asked_to_stop or not self._caged.interrupt():
                    await self._end_if("time")
                    return await asking
                asked_to_stop, deadline = True, now + OBEY_SECONDS
            if now - told >= 1.0:
                told = now
                await call.progress(round(now - started, 1), round(deadline - started, 1), "running")

    async def _give_up(self, asking: asyncio.Future[dict[str, object] | None]) -> None:
        """Nobody waits for the answer any more; it must not be taken for the answer to the next piece of code."""
        with anyio.CancelScope(shield=True):  # each step has its bound
            if self._caged.interrupt():
                await asyncio.wait([asking], timeout=OBEY_SECONDS)
            if not asking.done():
                await self._end_if("closed")
                asking.cancel()
        self._out, self._err = Tape(), Tape()

    async def _end_if(self, reason: Killed | None) -> None:
        if reason is not None and self.killed is None:
            self.killed = reason
            await self._caged.kill()

    def _flood(self) -> Killed | None:
        written = self._out.total + self._err.total
        waiting = max(self._answers.qsize(), self._errors_through.qsize())
        return "output" if written > MOST_OUTPUT_BYTES or waiting > _MOST_ANSWERS else None

    def _listen(self) -> None:
        mark = b"\x1e" + self._word.encode()
        out = Frames(mark, lambda data: self._out.feed(data), lambda line: self._answers.put_nowait(read_answer(line)))
        err = Frames(mark, lambda data: self._err.feed(data), lambda line: self._errors_through.put_nowait(None))
        self._readers = [
            asyncio.ensure_future(self._read(self._caged.stdout, out)),
            asyncio.ensure_future(self._read(self._caged.stderr, err)),
        ]

    async def _read(self, stream: asyncio.StreamReader, frames: Frames) -> None:
        while chunk := await stream.read(_CHUNK):
            frames.feed(chunk)
        frames.close()
        if stream is self._caged.stdout:
            self._answers.put_nowait({"end": True})
        else:
            self._errors_through.put_nowait(None)
