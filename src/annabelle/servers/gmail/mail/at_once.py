"""Several questions at once, but not too many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_AT_ONCE = 8


async def some_at_once(ask: Callable[[str], Awaitable[T]], ids: Iterable[str]) -> list[T]:
    """All answers in order, a few asked for at a time: Google counts requests."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(item: str) -> T:
        async with gate:
            return await ask(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in ids]
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
    return [task.result() for task in tasks]
