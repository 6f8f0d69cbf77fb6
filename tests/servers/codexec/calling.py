"""The shapes of the fixtures that run code, and ways to see what is left of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil

from annabelle.core.home import Home
from annabelle.servers.kit import ToolServer
from support import timing

MakeServer = Callable[..., ToolServer]
CallAs = Callable[..., Awaitable[Any]]


def processes_with(word: str, home: Home | None = None) -> list[int]:
    """Processes of this machine whose command line has a word in it; only those caged in a home, if one is given."""
    found: list[int] = []
    place = "" if home is None else "/".join(home.root.parts[-3:])  # how a cage names what it sees of the home
    for process in psutil.process_iter():
        try:
            if (
                word in " ".join(process.cmdline())
                and process.status() != psutil.STATUS_ZOMBIE
                and place in Path(f"/proc/{process.pid}/mountinfo").read_text()
            ):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def come(word: str, home: Home | None = None, seconds: float = 60.0) -> bool:
    """Whether a process with a word in its command line is there within a bound."""
    return _becomes(word, home, True, seconds)


def gone(word: str, home: Home | None = None, seconds: float = 30.0) -> bool:
    """Whether every process with a word in its command line ends within a bound."""
    return _becomes(word, home, False, seconds)


def _becomes(word: str, home: Home | None, there: bool, seconds: float) -> bool:
    ends = time.monotonic() + timing.seconds(seconds)
    while bool(processes_with(word, home)) is not there:
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


async def eventually(ask: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait, bounded, for something that no event tells of."""
    async with asyncio.timeout(timing.seconds(seconds)):
        while not ask():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
