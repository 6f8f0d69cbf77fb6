"""What a thinker needs of the durable engine, and its implementation on `durable.Durable`."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, cast

from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import JsonObject
from annabelle.durable.engine import Durable

TURN_WORKFLOW: Final = "turn"
EXTRACT_WORKFLOW: Final = "extract-facts"
TIDY_WORKFLOW: Final = "tidy-facts"
SUMMARISE_WORKFLOW: Final = "summarise"
COMPACT_WORKFLOW: Final = "compact-session"
CANCEL_TOPIC: Final = "cancel"

StepFunction = Callable[[], Awaitable[JsonObject]]
WorkflowFunction = Callable[[JsonObject], Awaitable[JsonObject]]


class WorkflowEngine(Protocol):
    """Workflows by id, steps that are done once, and waits that survive the process."""

    def workflow(self, name: str, function: WorkflowFunction) -> None:
        """Register a workflow; before `launch`."""
        ...

    async def launch(self) -> None: ...

    async def start(self, name: str, workflow_id: str, argument: JsonObject) -> None: ...

    async def step(self, name: str, work: StepFunction) -> JsonObject:
        """Inside a workflow: run `work` once. A replay gets the recorded result or error."""
        ...

    async def wait(self, topic: str, timeout: float) -> bool:
        """Inside a workflow: True if a signal came, False after the timeout, across restarts."""
        ...

    async def signal(self, workflow_id: str, topic: str) -> None: ...

    async def finished(self, workflow_id: str) -> JsonObject | None:
        """The result of a finished workflow, or None; raises what it raised."""
        ...

    async def exists(self, workflow_id: str) -> bool:
        """Whether it was ever started."""
        ...

    async def recorded(self, workflow_id: str, timeout: float) -> None:
        """Return when the end of this workflow is on disk."""
        ...

    async def close(self) -> None: ...


_RESULT_SECONDS = 5.0


class DurableEngine:
    """Workflows in the agent's own database."""

    def __init__(self, durable: Durable) -> None:
        self._durable = durable

    def workflow(self, name: str, function: WorkflowFunction) -> None:
        self._durable.workflow(name)(function)

    async def launch(self) -> None:
        await self._durable.launch()

    async def start(self, name: str, workflow_id: str, argument: JsonObject) -> None:
        await self._durable.start(name, workflow_id, argument)

    async def step(self, name: str, work: StepFunction) -> JsonObject:
        return cast("JsonObject", await self._durable.step(name, work))

    async def wait(self, topic: str, timeout: float) -> bool:
        return await self._durable.wait(topic, timeout) is not None

    async def signal(self, workflow_id: str, topic: str) -> None:
        await self._durable.signal(workflow_id, topic, {"topic": topic})

    async def finished(self, workflow_id: str) -> JsonObject | None:
        if await self._durable.status(workflow_id) in (None, "running"):
            return None
        return await self._durable.result(workflow_id, _RESULT_SECONDS)

    async def exists(self, workflow_id: str) -> bool:
        return await self._durable.status(workflow_id) is not None

    async def recorded(self, workflow_id: str, timeout: float) -> None:
        # How the turn ended does not matter here, only that its end is recorded.
        with contextlib.suppress(AnnabelleError):
            await self._durable.result(workflow_id, timeout)

    async def close(self) -> None:
        await self._durable.close()
