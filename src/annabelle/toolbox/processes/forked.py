"""Starts processes by forking them from a nursery, and a new nursery when the old one died."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from annabelle.core.errors import ServerDown
from annabelle.toolbox.processes.launch import Child, Launch
from annabelle.toolbox.processes.link import NurseryLink
from annabelle.toolbox.processes.warm import WarmNursery, start_nursery

_log = logging.getLogger(__name__)
_READY_SECONDS = 60.0


class ForkedLauncher:
    """One nursery at a time. Its children end with it and are started again by who watches them, from a new one."""

    def __init__(
        self, preload: tuple[str, ...], python_path: tuple[str, ...], log: Path, warm: WarmNursery | None = None
    ) -> None:
        self._preload, self._python_path, self._log_file = preload, python_path, log
        self._warm = warm
        self._link: NurseryLink | None = None
        self._starting = asyncio.Lock()
        self._stopped = False

    @property
    def pid(self) -> int | None:
        return self._link.pid if self._link is not None else None

    async def launch(self, order: Launch) -> Child:
        link = await self._living()
        return await link.fork(order)

    async def stop(self) -> None:
        self._stopped = True
        async with self._starting:
            if self._link is None and self._warm is not None:
                self._link = NurseryLink(self._warm)
            if self._link is not None:
                await self._link.stop()
                self._link = None

    async def _living(self) -> NurseryLink:
        async with self._starting:
            if self._link is not None and self._link.lost.is_set():
                _log.warning("the nursery (process %d) died; a new one is started", self._link.pid)
                await self._link.stop()
                self._link = None
            if self._link is None and not self._stopped:
                warm = self._warm or start_nursery(self._preload, self._python_path, self._log_file)
                self._warm = None
                self._link = NurseryLink(warm)
            link = self._link
            if link is None:
                raise ServerDown("Annabelle is being stopped.")
        await link.ready(_READY_SECONDS)
        return link
