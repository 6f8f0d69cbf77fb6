"""A small web on loopback: every request is kept, every answer is what the test says."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    address: str
    body: bytes = b""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def form(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(self.body.decode()).items()}


@dataclass(frozen=True, slots=True)
class Reply:
    body: bytes = b""
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    broken: bool = False
    """Promises one byte more than it sends."""


Answer = Callable[[Asked], Awaitable[Reply]]


def redirect(location: str, status: int = 302) -> Reply:
    return Reply(status=status, headers=(("Location", location),))


@dataclass(slots=True)
class LocalWeb:
    """Pages by path; what is not there is 404."""

    port: int
    asked: list[Asked] = field(default_factory=list)
    pages: dict[str, Reply | Answer] = field(default_factory=dict)

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    async def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        page = self.pages.get(asked.path, Reply(b"nothing here", 404))
        return page if isinstance(page, Reply) else await page(asked)


@asynccontextmanager
async def local_web(tls: ssl.SSLContext | None = None, host: str = "0.0.0.0") -> AsyncGenerator[LocalWeb]:
    """Listens on every loopback address, so that one can stand for the internet and another for what is private."""
    web = LocalWeb(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            await speak(web.answer, reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, host, 0, ssl=tls, limit=1_000_000)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        server.close_clients() if hasattr(server, "close_clients") else None


async def speak(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request, one answer, and the end."""
    asked = await read_request(reader, writer.get_extra_info("sockname")[0])
    reply = await answer(asked)
    length = len(reply.body) + int(reply.broken)
    head = [f"HTTP/1.1 {reply.status} X", f"Content-Length: {length}", "Connection: close"]
    head += [f"Content-Type: {reply.kind}"] if reply.kind else []
    head += [f"{name}: {value}" for name, value in reply.headers]
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + reply.body)
    await writer.drain()


async def read_request(reader: asyncio.StreamReader, address: str) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, address, body)
