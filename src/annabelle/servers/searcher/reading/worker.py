"""One reading process, as seen from the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys

import anyio

_MODULE = "annabelle.servers.searcher.reading.reader"
_END_SECONDS = 5.0
_LINE_BYTES = 64_000_000
_PASSED_ON = ("PATH", "PYTHONPATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "TEMP")
"""Of the environment; no key is among it."""


class Worker:
    """Reads one document after another. One that fails is not used again."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.documents = 0

    @classmethod
    async def start(cls) -> Worker:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # what lies in the folder it is started in is no part of it
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
        """The reader's answer; None if it did not live to give one."""
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
        """End it now, also where the call it worked for is being cancelled."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        with anyio.move_on_after(_END_SECONDS, shield=True):
            if self._process.stdout is not None:
                await self._process.stdout.read()  # to its end, so that the pipe is closed too
            await self._process.wait()
