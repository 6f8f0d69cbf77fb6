"""Work that is worth doing only while somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from starlette.requests import Request

from annabelle.core.errors import TurnCancelled

T = TypeVar("T")
_SETTLE_SECONDS = 5.0


async def while_listened_to(request: Request, work: Coroutine[object, object, T]) -> T:
    """The result of the work. When whoever asked hangs up (Ctrl-C in the terminal), the work is cancelled."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_hangs_up(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise TurnCancelled("Whoever asked for it has hung up, so it was stopped.")
        return working.result()
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working}, timeout=_SETTLE_SECONDS)


async def _hangs_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass  # what is left of a body that was read already
