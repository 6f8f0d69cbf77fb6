"""Connects a server's pipes to the event loop: bytes in by callback, bytes out with back-pressure."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from annabelle.toolbox.protocol.errors import ConnectionLost

_HIGH_WATER = 1_000_000
"""Bytes that may wait for a server that does not read; a caller past that waits too, up to its own time limit."""


class _Reading(asyncio.Protocol):
    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_data, self._on_end = on_data, on_end

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class _Writing(asyncio.BaseProtocol):
    def __init__(self, on_end: Callable[[], None]) -> None:
        self.writable = asyncio.Event()
        self.writable.set()
        self._on_end = on_end
        self.hung_up = False

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.writable.set()
        if not self.hung_up:  # after we hang up the server may still say its last words
            self._on_end()


class Pipes:
    """Both directions to one server. It owns the two descriptors from the moment `open` is called."""

    def __init__(self, reader: asyncio.ReadTransport, writer: asyncio.WriteTransport, writing: _Writing) -> None:
        self._reader, self._writer, self._writing = reader, writer, writing

    @classmethod
    async def open(cls, stdin: int, stdout: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> Pipes:
        """`stdin` is written to, `stdout` read from; `on_end` is called when either side is closed."""
        loop = asyncio.get_running_loop()
        writer, writing = await loop.connect_write_pipe(lambda: _Writing(on_end), os.fdopen(stdin, "wb", buffering=0))
        writer.set_write_buffer_limits(high=_HIGH_WATER)
        reader, _ = await loop.connect_read_pipe(
            lambda: _Reading(on_data, on_end), os.fdopen(stdout, "rb", buffering=0)
        )
        return cls(reader, writer, writing)

    async def write(self, line: bytes) -> None:
        """Hand a line to the server; waits while too much of what was written before is still unread."""
        if not self._writing.writable.is_set():
            await self._writing.writable.wait()
        if self._writer.is_closing():
            raise ConnectionLost("its input is closed", sent=False)
        self._writer.write(line)
        if self._writer.is_closing():  # the write itself found the pipe broken, so not a byte of it arrived
            raise ConnectionLost("its input is closed", sent=False)

    def write_if_room(self, line: bytes) -> None:
        """For what may be lost: a courtesy that is not worth waiting for."""
        if self._writing.writable.is_set() and not self._writer.is_closing():
            self._writer.write(line)

    def hang_up(self) -> None:
        """Close the server's input, which asks it to end."""
        if not self._writer.is_closing():
            self._writing.hung_up = True
            self._writer.close()

    def close(self) -> None:
        self._writing.hung_up = True
        if not self._writer.is_closing():
            self._writer.abort()
        if not self._reader.is_closing():
            self._reader.close()
