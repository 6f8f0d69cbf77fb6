"""A memory server in this process, for tests that call its tools as somebody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from annabelle.servers.kit import Call, ToolServer
from annabelle.servers.kit.call import enter_call
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.lazy_memory import LazyMemory
from annabelle.servers.memory.open_memory import OpenMemory
from annabelle.servers.memory.server import assemble

CallTool = Callable[..., Awaitable[Any]]


class Memory:
    """One memory server without a protocol in between.

    call = memory.as_("owner", "annabelle")
    stored = await call("store_fact", fact="Ada likes tea", category="preference")
    """

    def __init__(self, config: MemoryConfig) -> None:
        self.config = config
        self.opening = LazyMemory(config)
        self.server: ToolServer = assemble(self.opening)

    def as_(self, user_id: str = "owner", agent_id: str = "annabelle", **facts: Any) -> CallTool:
        """Call tools as this user's agent. `caller`, `trust`, `origins`, `message_id`, `thread_id`, … are as the hub
        would say them; by default an agent that repeats what its user said."""
        said: dict[str, Any] = {"user_id": user_id, "agent_id": agent_id, "caller": "agent", "trust": "trusted"}
        call = Call(**(said | facts))

        async def do(name: str, /, **arguments: object) -> Any:
            enter_call(call)
            return await self.server.tools[name].call(dict(arguments))

        return do

    def as_person(self, user_id: str = "owner", agent_id: str = "annabelle", **facts: Any) -> CallTool:
        """As a person at a terminal, whose default agent is `agent_id`."""
        return self.as_(user_id, agent_id, **{"caller": "cli", **facts})

    def as_hub(self, user_id: str = "owner", agent_id: str = "annabelle", **facts: Any) -> CallTool:
        return self.as_(user_id, agent_id, **{"caller": "hub", **facts})

    async def library(self) -> OpenMemory:
        return await self.opening.get()

    async def close(self) -> None:
        await self.server.close()


MakeMemory = Callable[..., Memory]
