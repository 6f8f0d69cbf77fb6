"""The heads of HTTP messages, as far as a forward proxy has to understand them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_HEAD_BYTES = 256_000
_HOP = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"te", b"upgrade"})


class BadHead(Exception):
    """What came is not the head of an HTTP message."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line's three words and the header lines, as they came."""

    first: tuple[bytes, bytes, bytes]
    lines: tuple[tuple[bytes, bytes], ...]

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.lines if key.lower() == name), None)

    def pack(self, first: bytes) -> bytes:
        """The head without what belongs to one connection only. It closes the connection: one for each message
        keeps what belongs to one site from ever reaching another."""
        kept = [b"%b: %b" % line for line in self.lines if line[0].lower() not in _HOP]
        return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request wants to go."""

    host: str
    port: int
    path: bytes = b"/"


async def read_head(reader: asyncio.StreamReader, *, strict: bool = True) -> Head:
    """The next head. Sites get some lines wrong that browsers overlook, so of an answer those are left out."""
    first, *rest = await _lines(reader)
    words = first.split(b" ", 2)
    if len(words) < 2:
        raise BadHead
    lines: list[tuple[bytes, bytes]] = []
    for line in rest:
        name, colon, value = line.partition(b":")
        if colon and name and name == name.strip():
            lines.append((name, value.strip()))
        elif strict:
            raise BadHead
    return Head((words[0], words[1], words[2] if len(words) > 2 else b""), tuple(lines))


async def _lines(reader: asyncio.StreamReader) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    while True:
        try:
            line = await reader.readline()
        except ValueError as error:
            raise BadHead from error
        size += len(line)
        text = line.rstrip(b"\r\n")
        if not line.endswith(b"\n") or size > MAX_HEAD_BYTES or not (text or lines):
            raise BadHead
        if not text:
            return lines
        lines.append(text)


def connect_target(authority: bytes) -> Target:
    """`host:port` of a CONNECT request."""
    try:
        parts = urlsplit(f"//{authority.decode('ascii')}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadHead from error
    if not host or port is None:
        raise BadHead
    return Target(host, port)


def plain_target(url: bytes) -> Target:
    """`http://host:port/path` of any other request to a proxy."""
    try:
        parts = urlsplit(url.decode("ascii"))
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadHead from error
    if parts.scheme != "http" or not host:
        raise BadHead
    path = parts.path or "/"
    return Target(
        host, 80 if port is None else port, f"{path}?{parts.query}".encode() if parts.query else path.encode()
    )
