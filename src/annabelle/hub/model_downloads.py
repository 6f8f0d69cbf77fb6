"""Models that are fetched while the hub runs. A download that a stop ends goes on where it stopped when it is asked for
again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from pydantic import Field

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, NotFound
from annabelle.core.models import CamelModel

Fetch = Callable[[Callable[[int, int | None], None]], Awaitable[object]]
"""Fetches one model, and tells how many bytes it has and how many there are."""


class ModelDownload(CamelModel):
    name: str
    state: Literal["running", "done", "failed", "stopped"] = "running"
    done: int = Field(default=0, description="Bytes that are here")
    total: int | None = Field(default=None, description="Bytes there are, if known")
    problem: str | None = None


class ModelDownloads:
    def __init__(self) -> None:
        self._known: dict[str, ModelDownload] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tasks = BackgroundTasks()

    def list(self) -> list[ModelDownload]:
        """What is fetched, and what came of the others since the start."""
        return list(self._known.values())

    def begin(self, name: str, fetch: Fetch) -> ModelDownload:
        """Fetch a model in the background, unless that is being done already."""
        if name not in self._running:
            self._known[name] = ModelDownload(name=name)
            self._running[name] = self._tasks.start(self._run(name, fetch))
        return self._known[name]

    def cancel(self, name: str) -> ModelDownload:
        if name not in self._running:
            raise NotFound(f"{name} is not being fetched.")
        self._running[name].cancel()
        return self._known[name].model_copy(update={"state": "stopped"})

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _run(self, name: str, fetch: Fetch) -> None:
        def tell(done: int, total: int | None) -> None:
            self._known[name] = ModelDownload(name=name, done=done, total=total)

        changes: dict[str, str] = {"state": "stopped"}
        try:
            await fetch(tell)
            changes = {"state": "done"}
        except AnnabelleError as error:
            changes = {"state": "failed", "problem": " ".join(filter(None, (error.message, error.hint)))}
        finally:
            del self._running[name]
            self._known[name] = self._known[name].model_copy(update=changes)
