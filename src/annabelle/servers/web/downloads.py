"""Files a page sends: each goes to Downloads/ of the workspace, unless it is too large or a program."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from annabelle.core.errors import AnnabelleError
from annabelle.servers.kit import StopSign, in_thread
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.web.wording import shown_line

if TYPE_CHECKING:
    from playwright.async_api import Download

FOLDER = "Downloads"
MAX_BYTES = 50_000_000
"""Of one file, and of all that come down at the same time."""
MAX_AT_ONCE = 5
_LOOK_SECONDS = 0.25
_PATIENCE_SECONDS = 600.0


class Downloads:
    """What is coming down in one browser. `incoming` is where the browser writes until a file is whole."""

    def __init__(self, incoming: Path, workspace: Workspace, news: Callable[[str], None]) -> None:
        self._incoming, self._workspace, self._news = incoming, workspace, news
        self._running: set[asyncio.Task[None]] = set()
        self.begun = 0
        self._arrival = asyncio.Event()

    def begin(self, download: Download) -> None:
        self.begun += 1
        self._arrival.set()
        work = self._keep(download) if len(self._running) < MAX_AT_ONCE else self._refuse(download)
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def began(self, since: int, seconds: float) -> bool:
        """Whether one more than `since` has begun; the browser may tell of it a moment late."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.begun <= since:
                    self._arrival.clear()
                    await self._arrival.wait()
        return self.begun > since

    async def wait(self, seconds: float) -> None:
        """Give files that come down some time to arrive."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=seconds)

    @property
    def busy(self) -> int:
        return len(self._running)

    async def stop(self) -> None:
        for task in list(self._running):
            task.cancel()
        await self.wait(2)

    async def _refuse(self, download: Download) -> None:
        self._news(f"A download was refused: at most {MAX_AT_ONCE} run at the same time.")
        async with asyncio.timeout(5):
            await download.cancel()

    async def _keep(self, download: Download) -> None:
        name = shown_line(download.suggested_filename, 100)
        try:
            path = await self._whole(download)
            if path is None:
                self._news(f"The download of {name} was stopped: it is larger than {MAX_BYTES} bytes.")
                return
            kept = await self._workspace.keep(FOLDER, download.suggested_filename, await in_thread(_reader(path)))
            self._news(f"Downloaded {kept.path} ({kept.size} bytes).")
        except AnnabelleError as error:
            self._news(f"The download of {name} was not kept: {error.message}")
        except Exception:  # noqa: BLE001  the browser's own errors are of a class that is not loaded here
            self._news(f"The download of {name} failed.")
        finally:
            with contextlib.suppress(Exception):
                await download.delete()

    async def _whole(self, download: Download) -> Path | None:
        """The finished file; None when it grew too large and was stopped."""
        arriving = asyncio.ensure_future(download.path())
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not arriving.done():
                    await asyncio.wait([arriving], timeout=_LOOK_SECONDS)
                    if await in_thread(lambda _stop: _size(self._incoming)) > MAX_BYTES:
                        await download.cancel()
                        return None
            path = arriving.result()
        finally:
            arriving.cancel()
        return path if path.stat().st_size <= MAX_BYTES else None


def _size(folder: Path) -> int:
    total = 0
    for entry in folder.glob("*"):
        with contextlib.suppress(OSError):  # another download has just ended, and its file is gone
            total += entry.stat().st_size
    return total


def _reader(path: Path) -> Callable[[StopSign], bytes]:
    return lambda _stop: path.read_bytes()
