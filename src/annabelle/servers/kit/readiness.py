"""Whether a server can do its work: one that waits for credentials runs, lists its tools, and says what is missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic import Field

from annabelle.servers.kit.declare import tool
from annabelle.servers.kit.result import Result

TOOL = "readiness"

Readiness = Callable[[], Awaitable[str | None]]
"""What is missing, as one sentence with the command that mends it; None when nothing is."""


class Ready(Result):
    ready: bool
    missing: str | None = Field(default=None, description="What is missing, and the command that mends it")


class ReadinessTool:
    """Asked by the hub after the start and with every health check; `/status` shows the answer."""

    def __init__(self, ask: Readiness) -> None:
        self._ask = ask

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def readiness(self) -> Ready:
        """Tell whether everything this server needs is there."""
        missing = await self._ask()
        return Ready(ready=missing is None, missing=missing)
