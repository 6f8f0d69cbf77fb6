"""A local forward proxy that connects the browser only to checked addresses."""

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
from urllib.parse import urlsplit

from annabelle.core.errors import AnnabelleError, Unavailable
from annabelle.servers.kit.host_access import HostAccess

MAX_HEAD_BYTES = 256_000
_HOP = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"te", b"upgrade"})


class BadHttpHead(Exception):
    """Not a valid HTTP head."""


@dataclass(frozen=True, slots=True)
class HttpHead:
    """The three words of the first line, and the headers."""

    first: tuple[bytes, bytes, bytes]
    lines: tuple[tuple[bytes, bytes], ...]

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.lines if key.lower() == name), None)

    def pack(self, first: bytes) -> bytes:
        """The head without hop-by-hop headers. One connection per message keeps the data of sites apart."""
        kept = [b"%b: %b" % line for line in self.lines if line[0].lower() not in _HOP]
        return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    host: str
    port: int
    path: bytes = b"/"


async def read_head(reader: asyncio.StreamReader, *, strict: bool = True) -> HttpHead:
    """Read the next head. If not `strict`, skip malformed lines, as browsers do in responses."""
    first, *rest = await _lines(reader)
    words = first.split(b" ", 2)
    if len(words) < 2:
        raise BadHttpHead
    lines: list[tuple[bytes, bytes]] = []
    for line in rest:
        name, colon, value = line.partition(b":")
        if colon and name and name == name.strip():
            lines.append((name, value.strip()))
        elif strict:
            raise BadHttpHead
    return HttpHead((words[0], words[1], words[2] if len(words) > 2 else b""), tuple(lines))


async def _lines(reader: asyncio.StreamReader) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    while True:
        try:
            line = await reader.readline()
        except ValueError as error:
            raise BadHttpHead from error
        size += len(line)
        text = line.rstrip(b"\r\n")
        if not line.endswith(b"\n") or size > MAX_HEAD_BYTES or not (text or lines):
            raise BadHttpHead
        if not text:
            return lines
        lines.append(text)


def connect_target(authority: bytes) -> ProxyTarget:
    """Parse `host:port` of a CONNECT request."""
    try:
        parts = urlsplit(f"//{authority.decode('ascii')}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadHttpHead from error
    if not host or port is None:
        raise BadHttpHead
    return ProxyTarget(host, port)


def plain_target(url: bytes) -> ProxyTarget:
    """Parse `http://host:port/path` of any other request."""
    try:
        parts = urlsplit(url.decode("ascii"))
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadHttpHead from error
    if parts.scheme != "http" or not host:
        raise BadHttpHead
    path = parts.path or "/"
    return ProxyTarget(
        host, 80 if port is None else port, f"{path}?{parts.query}".encode() if parts.query else path.encode()
    )


_log = logging.getLogger(__name__)

PROXY_HEADER = "x-annabelle-gate"

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
"""Hosts the browser contacts on its own. They would learn which forms a person sees."""


@dataclass(frozen=True, slots=True)
class BlockedConnection:
    host: str
    port: int
    error: AnnabelleError


@dataclass(slots=True)
class EgressProxy:
    """Forward proxy on loopback. Its password keeps other programs out."""

    host_access: HostAccess
    user: str = "annabelle"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    refusals: deque[BlockedConnection] = field(default_factory=lambda: deque[BlockedConnection](maxlen=50))
    own_mark: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    """Marks the proxy's own responses, so that no site can imitate them."""
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def start(self) -> str:
        """Listen, and return the proxy URL."""
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
        task = asyncio.ensure_future(self._handle_connection(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, BadHttpHead):
            pass  # the browser sees the connection end
        finally:
            await _close_writer(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_SECONDS):
            head = await read_head(reader)
            if not self._is_authorized(head):
                realm = b'Proxy-Authenticate: Basic realm="annabelle"\r\n'
                await _write_refusal(writer, 407, b"Proxy Authentication Required", "", realm)
                return
        method, where, _version = head.first
        tunnel = method == b"CONNECT"
        target = connect_target(where) if tunnel else plain_target(where)
        if target.host in _PHONES_HOME:
            await _write_refusal(writer, 403, b"Forbidden", "")
            return
        try:
            if len(self._open) > _MAX_CONNECTIONS:
                raise Unavailable("The page opens too many connections at once.")
            out_reader, out_writer = await self._connect(target)
        except AnnabelleError as error:
            self.refusals.append(BlockedConnection(target.host, target.port, error))
            _log.info("%s:%d was not reached for a page: %s", target.host[:200], target.port, error.code)
            await _write_refusal(
                writer,
                403,
                b"Forbidden",
                error.message,
                b"%b: %b\r\n" % (PROXY_HEADER.encode(), self.own_mark.encode()),
            )
            return
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _pipe_both_ways(_pipe(reader, out_writer), _pipe(out_reader, writer))
            else:
                out_writer.write(head.pack(b"%b %b HTTP/1.1" % (method, target.path)))
                await _pipe_both_ways(_pipe(reader, out_writer), _forward_response(out_reader, writer))
        finally:
            await _close_writer(out_writer)

    def _is_authorized(self, head: HttpHead) -> bool:
        given = head.header(b"proxy-authorization") or b""
        expected = b"Basic " + base64.b64encode(f"{self.user}:{self.password}".encode())
        return hmac.compare_digest(given, expected)

    async def _connect(self, target: ProxyTarget) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(_CONNECT_SECONDS):
            addresses = await self.host_access.resolve_allowed(target.host, target.port)
            for address in addresses:
                with contextlib.suppress(OSError):
                    return await asyncio.open_connection(address, target.port, limit=MAX_HEAD_BYTES)
        raise Unavailable(f"{target.host} does not answer on port {target.port}.")


async def _forward_response(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward a response, with a head that makes the browser close the connection."""
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


async def _pipe_both_ways(up: Coroutine[None, None, None], down: Coroutine[None, None, None]) -> None:
    ways = [asyncio.ensure_future(up), asyncio.ensure_future(down)]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        if ways[0].done() and ways[0].exception() is not None:
            await asyncio.wait(ways[1:])  # a site may answer before it has read the whole request
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _write_refusal(
    writer: asyncio.StreamWriter, status: int, reason: bytes, sentence: str, more: bytes = b""
) -> None:
    body = sentence.encode()
    writer.write(_REFUSED % (status, reason, more, len(body), body))
    await writer.drain()


async def _close_writer(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()
