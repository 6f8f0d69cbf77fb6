"""HTTP/1.1 client for the processes of one install: pooled connections, whole replies and streamed lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

import httptools

_CONNECT_SECONDS: Final = 10.0
_MAX_IDLE: Final = 32
_PAUSE_BYTES: Final = 1_000_000
"""How much of a stream is buffered for a slow reader before reading pauses."""


@dataclass(slots=True)
class HttpReply:
    """A reply; header names are lower case. `body` stays empty for a streamed reply."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


class NotConnected(ConnectionError):
    """The port accepts no connections, or this client was closed."""


class LoopbackConnection(asyncio.Protocol):
    """One connection with at most one request in flight. The parser calls the `on_…` methods."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._reply = HttpReply()
        self._chunks: list[bytes] = []
        self._held_bytes = 0
        self._streams = self._paused = False
        self._complete = True
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.answered = False
        self.reusable = True

    def send(self, request: bytes, *, stream: bool) -> None:
        assert self._transport is not None
        self._parser = httptools.HttpResponseParser(self)
        self._reply, self._chunks, self._held_bytes = HttpReply(), [], 0
        self._streams, self._complete, self.answered = stream, False, False
        self._transport.write(request)

    async def read_reply(self) -> HttpReply:
        """Waits for the whole reply, or for the head of a streamed one."""
        while not (self._complete or self._error or (self._streams and self._chunks)):
            await self._wait()
        if self._error is not None and not (self._streams and self._chunks):
            raise self._error
        if not self._streams:
            self._reply.body = b"".join(self._chunks)
        return self._reply

    async def read_part(self) -> bytes:
        """Returns the part of a streamed body received since the last call; empty at the end."""
        while not (self._chunks or self._complete or self._error):
            await self._wait()
        if self._chunks:
            part = b"".join(self._chunks)
            self._chunks, self._held_bytes = [], 0
            if self._paused and self._transport is not None:
                self._paused = False
                self._transport.resume_reading()
            return part
        if self._error is not None:
            raise self._error
        return b""

    def close(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.answered = True
        if self._complete:
            self.close()  # unrequested data would be mistaken for the next reply
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"not HTTP: {error}"))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        self._fail(exc or ConnectionResetError("the peer closed the connection"))

    def on_message_begin(self) -> None:
        if self._complete:
            raise ConnectionError("a second reply to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._reply.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._reply.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)
        if self._streams:
            self._held_bytes += len(body)
            if self._held_bytes > _PAUSE_BYTES and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
            self._wake()

    def on_message_complete(self) -> None:
        self._complete = True
        if not self._parser.should_keep_alive():
            self.close()
        self._wake()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        if not self._complete:
            self._error = error
            self._wake()


class LoopbackHttpClient:
    """Sends requests to one port. Raises only OSError, including TimeoutError and ConnectionError.

    The peer may have closed a pooled connection while it was idle, so a request that got no byte of an answer on one
    is sent again. Peers recognise repeated requests.
    """

    def __init__(self, host: str, port: int, headers: Mapping[str, str]) -> None:
        self._host, self._port = host, port
        self._common_headers = f"Host: {host}:{port}\r\n{_format_headers(headers)}"
        self._idle: list[LoopbackConnection] = []
        self._closed = False

    async def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", timeout: float = 60
    ) -> HttpReply:
        connection, reply = await self._send(method, path, headers, body, timeout, stream=False)
        self._return_to_pool(connection)
        return reply

    async def stream_lines(
        self, path: str, headers: Mapping[str, str], silence: float
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Yields the lines of a streamed reply with its status; TimeoutError after `silence` seconds without one."""
        connection, reply = await self._send("GET", path, headers, b"", silence, stream=True)
        rest, complete = b"", False
        try:
            while True:
                async with asyncio.timeout(silence):
                    part = await connection.read_part()
                if not part:
                    break
                *ended, rest = (rest + part).split(b"\n")
                for line in ended:
                    yield reply.status, line
            complete = True
            if rest:
                yield reply.status, rest
        finally:
            if complete:
                self._return_to_pool(connection)
            else:
                connection.close()

    def close(self) -> None:
        self._closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, timeout: float, *, stream: bool
    ) -> tuple[LoopbackConnection, HttpReply]:
        length = f"Content-Length: {len(body)}\r\n" if body or method == "POST" else ""
        head = f"{method} {path} HTTP/1.1\r\n{self._common_headers}{_format_headers(headers)}{length}\r\n"
        while True:
            kept = self._pop_idle()
            connection = kept or await self._connect()
            try:
                connection.send(head.encode() + body, stream=stream)
                async with asyncio.timeout(timeout):
                    return connection, await connection.read_reply()
            except ConnectionError:
                connection.close()
                if kept is None or connection.answered:
                    raise
            except BaseException:
                connection.close()
                raise

    async def _connect(self) -> LoopbackConnection:
        if self._closed:
            raise NotConnected("this client was closed")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, connection = await loop.create_connection(LoopbackConnection, self._host, self._port)
        except OSError as error:
            raise NotConnected(f"no connection to {self._host}:{self._port}") from error
        return connection

    def _pop_idle(self) -> LoopbackConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
        return None

    def _return_to_pool(self, connection: LoopbackConnection) -> None:
        if self._closed or len(self._idle) >= _MAX_IDLE:
            connection.close()
        elif connection.reusable:
            self._idle.append(connection)


def _format_headers(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())
