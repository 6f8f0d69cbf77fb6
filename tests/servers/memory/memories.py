"""A memory server in this process, for tests that call its tools as somebody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from annabelle.servers.kit import Call, ToolServer
from annabelle.servers.kit.call import enter_call
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.lazy_memory import LazyMemory
from annabelle.servers.memory.open_memory import OpenMemory
from annabelle.servers.memory.server import assemble

CallTool = Callable[..., Awaitable[Any]]

TEA, CITY, MAIL = "Ada likes tea.", "Ada lives in Berlin.", "A mail says Ada is late, <!-- they say --> often"


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


async def fill(memory: Memory, user: str = "owner", name: str = "Ada") -> CallTool:
    """A little of everything, with a correction and something others wrote."""
    call = memory.as_(user, message_id="msg_1", thread_id="thr_1")
    read = memory.as_(user, trust="untrusted", origins=("gmail_read",))
    await call("store_fact", fact=TEA.replace("Ada", name), category="preference")
    await call("store_fact", fact=CITY.replace("Ada", name), category="background")
    await read("store_fact", fact=MAIL.replace("Ada", name), category="pattern")
    await call("store_fact", fact=f"{name} lives in Lisbon.", category="background")
    contact = (await call("create_contact", name=f"Grace of {name}", email="grace@navy.mil", notes="a\n\nb")).contact.id
    project = await call("create_project", name="Compiler", primary_contact_id=contact, participants=[contact])
    await call("link_project_source", project_id=project.project.id, mcp_name="github", external_project_id="A-0")
    await call("update_profile", updates={"user": {"city": "Berlin"}, "persona": {"name": "Annabelle"}})
    await call("update_profile", updates={"user": {"city": "Lisbon", "likes": ["tea"]}}, reason="she moved")
    await call("store_conversation", user_message=f"I am {name}", agent_response="Hello", session_id="thr_1")
    return call


async def facts(call: CallTool) -> dict[str, str]:
    """The current facts with their labels."""
    return {fact.fact: fact.trust for fact in (await call("list_facts", limit=50)).facts}


def folder(memory: Memory, *names: str) -> Path:
    return memory.config.export_folder.joinpath(*(names or ("annabelle",)))
