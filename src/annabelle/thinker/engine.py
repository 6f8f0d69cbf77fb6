"""What a thinker asks of the durable engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from annabelle.core.tools import JsonObject

TURN_WORKFLOW: Final = "turn"
EXTRACT_WORKFLOW: Final = "extract-facts"
TIDY_WORKFLOW: Final = "tidy-facts"
COMPACT_WORKFLOW: Final = "compact-session"
CANCEL_TOPIC: Final = "cancel"

Work = Callable[[], Awaitable[JsonObject]]
WorkflowFunction = Callable[[JsonObject], Awaitable[JsonObject]]


class Engine(Protocol):
    """Workflows by id, steps that are done once, and waits that survive the process."""

    def workflow(self, name: str, function: WorkflowFunction) -> None:
        """Say what a workflow of this name does; before `launch`."""
        ...

    async def launch(self) -> None: ...

    async def start(self, name: str, workflow_id: str, argument: JsonObject) -> None: ...

    async def step(self, name: str, work: Work) -> JsonObject:
        """Inside a workflow: do this once. A replay gets the recorded result, or the recorded error."""
        ...

    async def wait(self, topic: str, timeout: float) -> bool:
        """Inside a workflow: true when a signal came, false when the time passed, over any number of restarts."""
        ...

    async def signal(self, workflow_id: str, topic: str) -> None: ...

    async def finished(self, workflow_id: str) -> JsonObject | None:
        """What a finished workflow returned, or None while there is none or it runs; raises what it raised."""
        ...

    async def exists(self, workflow_id: str) -> bool:
        """Whether it was ever begun, ended or not."""
        ...

    async def recorded(self, workflow_id: str, timeout: float) -> None:
        """Returns when the end of this workflow is on disk."""
        ...

    async def close(self) -> None: ...
