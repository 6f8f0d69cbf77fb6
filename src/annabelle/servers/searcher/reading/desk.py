"""Hands documents to reading processes, a few at a time, and ends those that do not finish."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from annabelle.core.errors import ToolTimeout, Unavailable
from annabelle.servers.searcher.reading.worker import Worker

_AT_ONCE = 3
_IDLE_SECONDS = 60.0
_DOCUMENTS_EACH = 100
_LARGE_BYTES = 1_000_000
"""After a document of this size a process keeps more memory than it is worth."""


@dataclass(frozen=True, slots=True)
class Document:
    """What was fetched and has to be read."""

    kind: Literal["html", "pdf"]
    data: bytes
    url: str
    charset: str | None = None
    links: bool = True


@dataclass(frozen=True, slots=True)
class Text:
    title: str
    content: str
    note: str | None = None


class ReadingDesk:
    """Reads documents in processes of their own; loading the libraries takes longer than a page, so a process waits
    some time for the next one."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._idle: dict[Worker, asyncio.TimerHandle] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    async def read(self, document: Document, seconds: float) -> Text:
        """Title and text; a sentence if it can not be read, or not in time."""
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
        return Text(answer.get("title") or "", answer.get("content") or "", answer.get("note"))

    async def close(self) -> None:
        """End the processes that wait."""
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            await worker.end()
        await asyncio.gather(*self._leaving)

    async def _answer(self, document: Document) -> dict[str, str | None] | None:
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            answer = await self._by(worker, document)
            if answer is not None:
                return answer  # otherwise it may have died while it waited, which is not the document's fault
        return await self._by(await Worker.start(), document)

    async def _by(self, worker: Worker, document: Document) -> dict[str, str | None] | None:
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

    def _dismiss(self, worker: Worker) -> None:
        if self._idle.pop(worker, None) is not None:
            leaving = asyncio.create_task(worker.end())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
