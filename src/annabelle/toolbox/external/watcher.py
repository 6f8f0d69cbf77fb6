"""Sees changes of `external-mcps.json`, also by editors that replace the file instead of writing it (EXT-03)."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Protocol, cast

_log = logging.getLogger(__name__)
_FOLDER_SECONDS = 5.0


class _Awatch(Protocol):
    def __call__(
        self, *paths: Path, watch_filter: Callable[[object, str], bool], debounce: int, step: int, recursive: bool
    ) -> AsyncIterator[set[object]]: ...


class FileWatcher:
    """Calls back once the file has been quiet for a while after a change. The folder is watched, not the file."""

    def __init__(self, path: Path, quiet_ms: int, on_change: Callable[[], Awaitable[None]]) -> None:
        self._path, self._quiet_ms, self._on_change = path, quiet_ms, on_change
        self._seen = self._content()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch(), name="external-watcher")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=5)
            self._task = None

    def _content(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except OSError:
            return None

    async def _watch(self) -> None:
        # Imported here and in a thread: the boot must not wait for it.
        library = await asyncio.to_thread(importlib.import_module, "watchfiles")
        awatch = cast("_Awatch", library.awatch)
        while True:
            folders = {folder for folder in (self._path.parent, self._path.resolve().parent) if folder.is_dir()}
            if not folders:
                await asyncio.sleep(_FOLDER_SECONDS)
                await self._look()
                continue
            try:
                changes = awatch(
                    *folders,
                    watch_filter=lambda _, name: Path(name).name in (self._path.name, self._path.resolve().name),
                    debounce=4 * self._quiet_ms,
                    step=self._quiet_ms,
                    recursive=False,
                )
                await self._follow(changes)
            except (OSError, RuntimeError) as error:  # the folder went away, or the system ran out of watches
                _log.warning("%s can not be watched: %s", self._path, error)
                await asyncio.sleep(_FOLDER_SECONDS)

    async def _follow(self, changes: AsyncIterator[set[object]]) -> None:
        """Look once the watch has begun, and after each change: what comes while one is applied is seen next."""
        while True:
            change = asyncio.ensure_future(anext(changes, None))
            try:
                await asyncio.sleep(0)  # the watch begins with the first step of this
                await self._look()
                if await change is None:
                    return
            finally:
                change.cancel()

    async def _look(self) -> None:
        content = self._content()
        if content != self._seen:
            self._seen = content
            try:
                await self._on_change()
            except Exception:  # noqa: BLE001  the edge to a file anyone may write: the next change must be seen too
                _log.exception("a change of %s could not be applied", self._path.name)
