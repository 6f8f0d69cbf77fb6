"""A small pool of worker processes that read documents."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from dataclasses import dataclass
from typing import Literal

import anyio

from annabelle.core.errors import ToolTimeout, Unavailable

_MODULE = "annabelle.servers.searcher.document_reader"
_END_SECONDS = 5.0
_LINE_BYTES = 64_000_000
_PASSED_ON = ("PATH", "PYTHONPATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "TEMP")
"""Environment variables passed on; none holds a key."""


class ReaderProcess:
    """Reads one document after another; not reused after a failure."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.documents = 0

    @classmethod
    async def start(cls) -> ReaderProcess:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # do not import modules from the current folder
            "-m",
            _MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            limit=_LINE_BYTES,
        )
        return cls(process)

    async def read(self, head: dict[str, object], data: bytes) -> dict[str, str | None] | None:
        """The worker's answer; None if it died."""
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None
        assert taken is not None
        self.documents += 1
        try:
            given.write(json.dumps({**head, "size": len(data)}).encode() + b"\n")
            given.write(data)
            await given.drain()
            return json.loads(await taken.readline())
        except (OSError, ValueError):
            return None

    async def end(self) -> None:
        """End the process now, even if the call is being cancelled."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        with anyio.move_on_after(_END_SECONDS, shield=True):
            if self._process.stdout is not None:
                await self._process.stdout.read()  # to its end, so that the pipe is closed too
            await self._process.wait()


_AT_ONCE = 3
_IDLE_SECONDS = 60.0
_DOCUMENTS_EACH = 100
_LARGE_BYTES = 1_000_000
"""A process is not reused after a document of this size, because of its memory."""


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A fetched document to read."""

    kind: Literal["html", "pdf"]
    data: bytes
    url: str
    charset: str | None = None
    links: bool = True


@dataclass(frozen=True, slots=True)
class ExtractedText:
    title: str
    content: str
    note: str | None = None
    description: str = ""


class ReaderPool:
    """Reads documents in worker processes. Loading the libraries takes longer than reading a page, so an idle worker
    waits for the next document."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._idle: dict[ReaderProcess, asyncio.TimerHandle] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    async def read(self, document: FetchedDocument, seconds: float) -> ExtractedText:
        """Title and text. The error says why it could not be read."""
        try:
            async with asyncio.timeout(seconds), self._turns:
                answer = await self._answer(document)
        except TimeoutError as error:
            raise ToolTimeout(
                f"The document could not be read within {seconds:.0f} seconds.",
                hint="Allow more time, or open it with the browser tools.",
            ) from error
        if answer is None:
            raise Unavailable("The document is too complicated to be read.")
        if answer.get("error"):
            raise Unavailable(str(answer["error"]))
        return ExtractedText(
            answer.get("title") or "",
            answer.get("content") or "",
            answer.get("note"),
            answer.get("description") or "",
        )

    async def close(self) -> None:
        """End idle processes."""
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            await worker.end()
        await asyncio.gather(*self._leaving)

    async def _answer(self, document: FetchedDocument) -> dict[str, str | None] | None:
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            answer = await self._read_with(worker, document)
            if answer is not None:
                return answer  # otherwise it may have died while it waited, which is not the document's fault
        return await self._read_with(await ReaderProcess.start(), document)

    async def _read_with(self, worker: ReaderProcess, document: FetchedDocument) -> dict[str, str | None] | None:
        fit = False
        try:
            answer = await worker.read(
                {"kind": document.kind, "url": document.url, "charset": document.charset, "links": document.links},
                document.data,
            )
            fit = answer is not None and len(document.data) < _LARGE_BYTES and worker.documents < _DOCUMENTS_EACH
        finally:
            if not fit:
                await worker.end()
        if fit:
            self._idle[worker] = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._dismiss, worker)
        return answer

    def _dismiss(self, worker: ReaderProcess) -> None:
        if self._idle.pop(worker, None) is not None:
            leaving = asyncio.create_task(worker.end())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
