"""Bounds a whole stream, from its first byte to its last (LLM-09)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

_T = TypeVar("_T")


async def until(deadline: float, source: AsyncGenerator[_T], late: Callable[[], Exception]) -> AsyncGenerator[_T]:
    """Pass on `source`; when the loop's clock reaches the deadline while waiting for it, close it and raise `late()`.

    Each pull is bounded on its own: a timeout held across a `yield` would cancel the reader instead.
    """
    async with aclosing(source):
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    item = await anext(source)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise late() from error
            yield item
