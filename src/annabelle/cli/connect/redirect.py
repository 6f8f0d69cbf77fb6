"""The small server on this machine that the browser comes back to, once, with the person's decision."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

_READ_SECONDS = 10.0
_LINE_LIMIT = 16_384
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Annabelle</title>
<style>body{{font:18px/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1rem}}</style>
<h1>{title}</h1><p>{text}</p></html>
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the person decided: a code to go on with, or why not."""

    code: str = ""
    error: str = ""


class Redirect:
    """Waits for the one answer with the right state; whatever else knocks is turned away and changes nothing."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/"
        self._expected: str | None = None
        self._decided: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()

    async def decision(self, state: str) -> Decision:
        self._expected = state
        return await asyncio.shield(self._decided)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a browser."""
        with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_READ_SECONDS):
                request = (await reader.readline()).decode("latin-1").split()
                while (await reader.readline()).strip():
                    pass  # the headers say nothing that matters
                status, page, decision = self._judge(request)
                writer.write(_response(status, page))
                await writer.drain()
                # Only now: whoever waits for it may end this server.
                if decision is not None and not self._decided.done():
                    self._decided.set_result(decision)
        writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), _READ_SECONDS)

    def _judge(self, request: list[str]) -> tuple[str, str, Decision | None]:
        url = urlsplit(request[1] if len(request) == 3 else "")
        if len(request) != 3 or request[0] != "GET" or url.path != "/":
            return "404 Not Found", _page("Nothing here", "This address is for one sign-in only."), None
        sent = {name: values[0] for name, values in parse_qs(url.query).items()}
        if self._expected is None or sent.get("state") != self._expected:
            return "400 Bad Request", _page("Not this sign-in", "This answer belongs to no sign-in that waits."), None
        decision = Decision(sent.get("code", ""), sent.get("error", ""))
        if decision.code:
            return "200 OK", _page("Thank you", "You may close this page and go back to the terminal."), decision
        return "200 OK", _page("Not connected", "Nothing was allowed. You may close this page."), decision


@asynccontextmanager
async def waiting_redirect() -> AsyncGenerator[Redirect]:
    """Listens on a free port of this machine alone, for as long as it is used."""
    holder: list[Redirect] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await holder[0].answer(reader, writer)

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=_LINE_LIMIT)
    async with server:
        holder.append(Redirect(server.sockets[0].getsockname()[1]))
        yield holder[0]


def _page(title: str, text: str) -> str:
    return _PAGE.format(title=title, text=text)


def _response(status: str, page: str) -> bytes:
    body = page.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\r\n"
    )
    return head.encode() + body
