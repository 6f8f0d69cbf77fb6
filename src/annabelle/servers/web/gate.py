"""The browser's only way out: a proxy in this process that connects to judged addresses and to nothing else.

The browser never looks a name up itself. Whatever a page does (redirects, frames, fetch, sockets, popups) ends here,
where the name is looked up once and the connection goes to the very address that was judged.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import logging
import secrets
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field

from annabelle.core.errors import AnnabelleError, Unavailable
from annabelle.servers.kit.net.addresses import Reach
from annabelle.servers.web.heads import MAX_HEAD_BYTES, BadHead, Head, Target, connect_target, plain_target, read_head

_log = logging.getLogger(__name__)

MARK = "x-annabelle-gate"

_HEAD_SECONDS = 60.0
_CONNECT_SECONDS = 20.0
_IDLE_SECONDS = 300.0
_CHUNK = 65_536
_MAX_CONNECTIONS = 256
_REFUSED = (
    b"HTTP/1.1 %d %b\r\n%bContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
)
_PHONES_HOME = frozenset(
    {
        "android.clients.google.com",
        "clients2.google.com",
        "content-autofill.googleapis.com",
        "mtalk.google.com",
        "optimizationguide-pa.googleapis.com",
        "safebrowsing.googleapis.com",
        "update.googleapis.com",
    }
)
"""What the browser asks on its own account: which forms a person sees is nobody else's business."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A connection that was not made, and why."""

    host: str
    port: int
    error: AnnabelleError


@dataclass(slots=True)
class Gate:
    """A forward proxy on loopback. Its user and password keep other programs of this machine out."""

    reach: Reach
    user: str = "annabelle"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    refusals: deque[Refusal] = field(default_factory=lambda: deque[Refusal](maxlen=50))
    mark: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    """In the head of every answer that is the gate's own, so that no site can pass for it."""
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def start(self) -> str:
        """Listen, and give back the address for the browser."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(list(self._open), timeout=5)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._attend(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, BadHead):
            pass  # the browser sees the connection end, and tells the page
        finally:
            await _hang_up(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_SECONDS):
            head = await read_head(reader)
            if not self._knows(head):
                realm = b'Proxy-Authenticate: Basic realm="annabelle"\r\n'
                await _refuse(writer, 407, b"Proxy Authentication Required", "", realm)
                return
        method, where, _version = head.first
        tunnel = method == b"CONNECT"
        target = connect_target(where) if tunnel else plain_target(where)
        if target.host in _PHONES_HOME:
            await _refuse(writer, 403, b"Forbidden", "")
            return
        try:
            if len(self._open) > _MAX_CONNECTIONS:
                raise Unavailable("The page opens too many connections at once.")
            out_reader, out_writer = await self._connect(target)
        except AnnabelleError as error:
            self.refusals.append(Refusal(target.host, target.port, error))
            _log.info("%s:%d was not reached for a page: %s", target.host[:200], target.port, error.code)
            await _refuse(writer, 403, b"Forbidden", error.message, b"%b: %b\r\n" % (MARK.encode(), self.mark.encode()))
            return
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _both(_pipe(reader, out_writer), _pipe(out_reader, writer))
            else:
                out_writer.write(head.pack(b"%b %b HTTP/1.1" % (method, target.path)))
                await _both(_pipe(reader, out_writer), _answer(out_reader, writer))
        finally:
            await _hang_up(out_writer)

    def _knows(self, head: Head) -> bool:
        given = head.header(b"proxy-authorization") or b""
        expected = b"Basic " + base64.b64encode(f"{self.user}:{self.password}".encode())
        return hmac.compare_digest(given, expected)

    async def _connect(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(_CONNECT_SECONDS):
            addresses = await self.reach.addresses(target.host, target.port)
            for address in addresses:
                with contextlib.suppress(OSError):
                    return await asyncio.open_connection(address, target.port, limit=MAX_HEAD_BYTES)
        raise Unavailable(f"{target.host} does not answer on port {target.port}.")


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass a response on, its head changed so that the browser uses the connection for nothing else."""
    while True:
        async with asyncio.timeout(_IDLE_SECONDS):
            head = await read_head(reader, strict=False)
        first = b" ".join(head.first)
        if not head.first[1].startswith(b"1"):
            break
    writer.write(head.pack(first))
    await _pipe(reader, writer)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        async with asyncio.timeout(_IDLE_SECONDS):
            chunk = await reader.read(_CHUNK)
        if not chunk:
            return
        writer.write(chunk)
        await writer.drain()


async def _both(up: Coroutine[None, None, None], down: Coroutine[None, None, None]) -> None:
    """Pass bytes in both directions until one side has hung up."""
    ways = [asyncio.ensure_future(up), asyncio.ensure_future(down)]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        if ways[0].done() and ways[0].exception() is not None:
            await asyncio.wait(ways[1:])  # a site may answer before it was told everything
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _refuse(writer: asyncio.StreamWriter, status: int, reason: bytes, sentence: str, more: bytes = b"") -> None:
    body = sentence.encode()
    writer.write(_REFUSED % (status, reason, more, len(body), body))
    await writer.drain()


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()
