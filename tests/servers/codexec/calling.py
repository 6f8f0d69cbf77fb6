"""The shapes of the fixtures that run code, and ways to see what is left of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import psutil

from annabelle.servers.kit import ToolServer

MakeServer = Callable[..., ToolServer]
CallAs = Callable[..., Awaitable[Any]]


def processes_with(word: str) -> list[int]:
    """Processes of this machine whose command line has a word in it."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if word in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def come(word: str, seconds: float = 20.0) -> bool:
    """Whether a process with a word in its command line is there within a bound."""
    return _becomes(word, True, seconds)


def gone(word: str, seconds: float = 10.0) -> bool:
    """Whether every process with a word in its command line ends within a bound."""
    return _becomes(word, False, seconds)


def _becomes(word: str, there: bool, seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while bool(processes_with(word)) is not there:
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


async def eventually(ask: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait, bounded, for something that no event tells of."""
    async with asyncio.timeout(seconds):
        while not ask():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
