"""A small HTTP/1.1 client for loopback: a general one costs more CPU per turn than all of the turn's bookkeeping.

The peer is our own thinker, whose answers have a length or come in chunks. Every request carries an id that makes it
safe to repeat, so one that meets a kept connection the thinker has just closed is sent again on a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass

_CONNECT_SECONDS = 10.0
_KEPT = 32
_READ_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Head:
    status: int
    headers: dict[bytes, bytes]


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @property
    def usable(self) -> bool:
        return not self._writer.is_closing() and not self._reader.at_eof()

    async def ask(self, request: bytes, timeout: float) -> _Head:
        self._writer.write(request)
        async with asyncio.timeout(timeout):
            lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        pairs = (line.split(b":", 1) for line in lines[1:] if line)
        return _Head(int(lines[0].split(b" ", 2)[1]), {name.lower(): value.strip() for name, value in pairs})

    async def chunks(self, head: _Head, silence: float) -> AsyncIterator[bytes]:
        """The body as it comes; a TimeoutError when nothing does for long."""
        if head.headers.get(b"transfer-encoding", b"").lower() != b"chunked":
            length = int(head.headers.get(b"content-length", b"0"))
            if length:
                async with asyncio.timeout(silence):
                    yield await self._reader.readexactly(length)
            return
        while True:
            async with asyncio.timeout(silence):
                size = int((await self._reader.readline()).split(b";")[0], 16)
                chunk = await self._reader.readexactly(size + 2)
            if not size:
                return
            yield chunk[:-2]

    def close(self) -> None:
        self._writer.close()


class Wire:
    """Requests to one port. Raises OSError (also for a broken answer) and TimeoutError, nothing else."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._port = port
        self._head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._kept: list[_Connection] = []
        self._closed = False

    async def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b"", timeout: float = 60
    ) -> Reply:
        connection, head = await self._open(method, path, headers, body, timeout)
        whole = False
        try:
            with _broken_is_os_error():
                answer = b"".join([chunk async for chunk in connection.chunks(head, timeout)])
            whole = True
        finally:
            self._keep(connection, whole)
        return Reply(head.status, answer)

    async def lines(self, path: str, headers: dict[str, str], silence: float) -> AsyncIterator[tuple[int, bytes]]:
        """The lines of a streamed answer, each with the answer's status."""
        connection, head = await self._open("GET", path, headers, b"", silence)
        rest, whole = b"", False
        try:
            with _broken_is_os_error():
                async for chunk in connection.chunks(head, silence):
                    *ended, rest = (rest + chunk).split(b"\n")
                    for line in ended:
                        yield head.status, line
            if rest:
                yield head.status, rest
            whole = True
        finally:
            self._keep(connection, whole)

    async def _open(
        self, method: str, path: str, headers: dict[str, str], body: bytes, timeout: float
    ) -> tuple[_Connection, _Head]:
        own = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        length = f"Content-Length: {len(body)}\r\n" if body or method == "POST" else ""
        request = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self._head}{own}{length}\r\n".encode() + body
        while True:
            kept = next((one for one in iter(self._take, None) if one.usable), None)
            connection = kept or await self._connect()
            try:
                with _broken_is_os_error():
                    return connection, await connection.ask(request, timeout)
            except ConnectionError:
                connection.close()
                if kept is None:
                    raise
                # It was closed while it was kept: the next one, or a new one, tells whether the thinker lives.
            except BaseException:
                connection.close()
                raise

    def _take(self) -> _Connection | None:
        return self._kept.pop() if self._kept else None

    async def _connect(self) -> _Connection:
        if self._closed:
            raise ConnectionAbortedError("this client was closed")
        async with asyncio.timeout(_CONNECT_SECONDS):
            return _Connection(*await asyncio.open_connection("127.0.0.1", self._port, limit=_READ_LIMIT))

    def _keep(self, connection: _Connection, whole: bool) -> None:
        """Use a connection again, unless its answer was not read to the end."""
        if whole and connection.usable and len(self._kept) < _KEPT and not self._closed:
            self._kept.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        self._closed = True
        for connection in self._kept:
            connection.close()
        self._kept.clear()


@contextlib.contextmanager
def _broken_is_os_error() -> Generator[None]:
    """What a dying peer leaves behind, in one kind."""
    try:
        yield
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
        raise ConnectionError(f"the answer broke off: {error}") from error
