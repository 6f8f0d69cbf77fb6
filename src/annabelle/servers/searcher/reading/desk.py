"""Hands pages to reading processes, a few at a time, and ends those that do not finish."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from dataclasses import dataclass
from typing import Literal, cast

import anyio

from annabelle.core.errors import ToolTimeout, Unavailable

_AT_ONCE = 3
_END_SECONDS = 5.0
_MODULE = "annabelle.servers.searcher.reading.reader"
_PASSED_ON = ("PATH", "PYTHONPATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "TEMP")
"""Of the environment; no key is among it."""


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
    """Reads documents in processes of their own."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def read(self, document: Document, seconds: float) -> Text:
        """Title and text; a sentence if it can not be read, or not in time."""
        head = {"kind": document.kind, "url": document.url, "charset": document.charset, "links": document.links}
        try:
            async with asyncio.timeout(seconds), self._turns:
                written = await _run(json.dumps(head).encode() + b"\n" + document.data)
        except TimeoutError as error:
            raise ToolTimeout(
                f"The document could not be read within {seconds:.0f} seconds.",
                hint="Allow more time, or open it with the browser tools.",
            ) from error
        try:
            answer = cast("dict[str, str | None]", json.loads(written))
        except ValueError:
            raise Unavailable("The document is too complicated to be read.") from None
        if answer.get("error"):
            raise Unavailable(str(answer["error"]))
        return Text(answer.get("title") or "", answer.get("content") or "", answer.get("note"))


async def _run(given: bytes) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        _MODULE,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
    )
    try:
        written, _ = await process.communicate(given)
        return written
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with anyio.move_on_after(_END_SECONDS, shield=True):  # also where the call is being cancelled
                await process.wait()
