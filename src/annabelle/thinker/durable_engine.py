"""The thinker's view of the durable engine, over the one door to it."""

from __future__ import annotations

import contextlib
from typing import cast

from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import JsonObject
from annabelle.durable.durable import Durable
from annabelle.thinker.engine import Work, WorkflowFunction

_AT_ONCE_SECONDS = 5.0


class DurableEngine:
    """Turns as workflows of this agent's own database."""

    def __init__(self, durable: Durable) -> None:
        self._durable = durable

    def workflow(self, name: str, function: WorkflowFunction) -> None:
        self._durable.workflow(name)(function)

    async def launch(self) -> None:
        await self._durable.launch()

    async def start(self, name: str, workflow_id: str, argument: JsonObject) -> None:
        await self._durable.start(name, workflow_id, argument)

    async def step(self, name: str, work: Work) -> JsonObject:
        return cast("JsonObject", await self._durable.step(name, work))

    async def wait(self, topic: str, timeout: float) -> bool:
        return await self._durable.wait(topic, timeout) is not None

    async def signal(self, workflow_id: str, topic: str) -> None:
        await self._durable.signal(workflow_id, topic, {"topic": topic})

    async def finished(self, workflow_id: str) -> JsonObject | None:
        if await self._durable.status(workflow_id) in (None, "running"):
            return None
        return await self._durable.result(workflow_id, _AT_ONCE_SECONDS)

    async def exists(self, workflow_id: str) -> bool:
        return await self._durable.status(workflow_id) is not None

    async def recorded(self, workflow_id: str, timeout: float) -> None:
        # How the turn ended is no matter here, only that its end is written down.
        with contextlib.suppress(AnnabelleError):
            await self._durable.result(workflow_id, timeout)

    async def close(self) -> None:
        await self._durable.close()
