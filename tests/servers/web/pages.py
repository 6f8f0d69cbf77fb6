"""A small web site for a real browser: pages by path, and a list of what was asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

Page = str | bytes | tuple[int, dict[str, str], str | bytes]


@dataclass(slots=True)
class Site:
    """`pages` may be changed at any time. `connections` counts who came, also without a proper request."""

    pages: dict[str, Page | Callable[[str], Page]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> Site:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def clear(self) -> None:
        self.pages.clear()
        self.asked.clear()
        self.heads.clear()
        self.bodies.clear()
        self.connections = 0
        self.hanging.clear()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await self._answer(reader, writer):
                    pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request. The connection is kept, as most sites do, whatever the request asks for."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        path = head.split(" ", 2)[1]
        length = next((int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0)
        self.bodies.append(await reader.readexactly(length))
        self.asked.append(path)
        self.heads.append(head)
        page = self.pages.get(path.partition("?")[0], (404, {}, "not here"))
        if callable(page):
            page = page(path)
        if page == "hang":
            self.hanging.set()
            await asyncio.Event().wait()
        status, headers, body = page if isinstance(page, tuple) else (200, {}, page)
        data = body.encode() if isinstance(body, str) else body
        fields = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(data)), **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + data)
        await writer.drain()
        return True
