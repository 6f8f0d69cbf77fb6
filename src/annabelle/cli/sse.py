"""Server-sent events as they come over the wire, and the reader that picks up where it was cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass

import httpx2 as httpx

from annabelle.core.errors import HubUnreachable

RECONNECT_SECONDS = 0.25
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: what it is called, what it says, and the id to come back with."""

    data: str
    event: str = "message"
    id: str | None = None


async def parse(lines: AsyncIterable[str]) -> AsyncGenerator[ServerEvent]:
    """Events from lines. One that the connection cut off in the middle is dropped: it comes again after a reconnect."""
    name, identity, data = "message", None, list[str]()
    async for line in lines:
        if not line:
            if data:
                yield ServerEvent("\n".join(data), name, identity)
            name, identity, data = "message", None, []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            identity = value


Connect = Callable[[str | None], AbstractAsyncContextManager[httpx.Response]]


async def follow(connect: Connect, last_id: str | None) -> AsyncGenerator[ServerEvent]:
    """Events until the reader stops, over any number of connections; each starts after the last event that was seen.

    `connect` opens the stream after the given id. When no connection comes about for a minute, HubUnreachable.
    """
    loop = asyncio.get_running_loop()
    give_up = loop.time() + PATIENCE_SECONDS
    while True:
        connected = False
        try:
            async with connect(last_id) as response, aclosing(parse(response.aiter_lines())) as events:
                connected = True
                async for event in events:
                    last_id = event.id or last_id
                    yield event
        except (httpx.TransportError, HubUnreachable) as error:
            if not connected and loop.time() > give_up:
                raise HubUnreachable(
                    "The connection to Annabelle was lost.", hint="See whether it runs: annabelle status"
                ) from error
        if connected:  # also one on which nothing was said: a turn may be quiet for longer than our patience
            give_up = loop.time() + PATIENCE_SECONDS
        await asyncio.sleep(RECONNECT_SECONDS)
