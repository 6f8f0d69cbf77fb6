"""A small HTTP/1.1 client for the one peer a thinker has: the hub on this machine.

A general client costs about a millisecond of CPU per request; a turn makes five of them. Keep-alive, one response at a
time per connection, parsed by the same C parser the server uses. Every request to the hub is idempotent by the id
it carries, so one that fails on a kept connection the hub had just closed is sent again on a new one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import httptools

from annabelle.core.errors import HubUnreachable, OperatorMistake

_CONNECT_SECONDS = 5.0
_KEPT_CONNECTIONS = 16


@dataclass(slots=True)
class Reply:
    """A whole response."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


class _Connection(asyncio.Protocol):
    """One kept connection; the parser's callbacks are the `on_…` methods."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._reply = Reply()
        self._chunks: list[bytes] = []
        self._waiter: asyncio.Future[Reply] | None = None
        self.reusable = True

    async def exchange(self, request: bytes, timeout: float) -> Reply:
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._reply, self._chunks = Reply(), []
        self._transport.write(request)
        async with asyncio.timeout(timeout):
            return await self._waiter

    def close(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"not HTTP: {error}"))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        self._fail(exc or ConnectionResetError("the hub closed the connection"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._reply.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        self._reply.status = self._parser.get_status_code()
        self._reply.body = b"".join(self._chunks)
        if not self._parser.should_keep_alive():
            self.close()
        self._parser = httptools.HttpResponseParser(self)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(self._reply)
            self._waiter = None

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self._waiter = None


class HubWire:
    """Sends requests to the hub over kept connections; raises `HubUnreachable` when it can not be reached."""

    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        parts = urlsplit(base_url)
        if parts.scheme != "http" or parts.hostname is None or parts.port is None:
            raise OperatorMistake(f"The hub's address {base_url!r} is not of the form http://host:port.")
        self._host, self._port = parts.hostname, parts.port
        self._common = "".join(f"{name}: {value}\r\n" for name, value in {"Host": parts.netloc, **headers}.items())
        self._idle: list[_Connection] = []
        self._closed = False

    async def request(
        self, method: str, path: str, body: bytes = b"", *, headers: dict[str, str], timeout: float
    ) -> Reply:
        """One exchange. A time-out also counts as unreachable: the hub bounds its own work far below it."""
        extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if method == "POST" else ""
        request = f"{method} {path} HTTP/1.1\r\n{self._common}{extra}{length}\r\n".encode() + body
        while True:
            kept = self._take()
            connection = kept or await self._connect()
            try:
                reply = await connection.exchange(request, timeout)
            except (OSError, TimeoutError) as error:
                connection.close()
                if kept is not None and not isinstance(error, TimeoutError):
                    continue
                raise HubUnreachable(f"The hub does not answer: {error or type(error).__name__}.") from error
            except asyncio.CancelledError:
                connection.close()
                raise
            self._keep(connection)
            return reply

    def close(self) -> None:
        self._closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, connection = await loop.create_connection(_Connection, self._host, self._port)
        except (OSError, TimeoutError) as error:
            raise HubUnreachable(
                f"The hub at {self._host}:{self._port} can not be reached.", hint="Is `annabelle up` running?"
            ) from error
        return connection

    def _take(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
        return None

    def _keep(self, connection: _Connection) -> None:
        if self._closed or len(self._idle) >= _KEPT_CONNECTIONS:
            connection.close()
        elif connection.reusable:
            self._idle.append(connection)
