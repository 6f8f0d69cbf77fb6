"""For tests of the model service: a ledger that remembers, settings by URL, and a quick way to ask."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, UserPromptPart

from annabelle.core.contract import ModelCall, Reservation, Reserve
from annabelle.core.errors import HubUnreachable
from annabelle.core.ids import new_id
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolSpec
from annabelle.llm.service import ModelService
from annabelle.llm.types import Completed, ModelEvent, ModelRequest as Request, TextDelta, ThinkDelta

KEY = "gsk_thisisasecretkey1234567890"


@dataclass
class Book:
    """A ledger in memory that can refuse and can be away."""

    reserved: list[Reserve] = field(default_factory=list)
    settled: list[ModelCall] = field(default_factory=list)
    refuse: str | None = None
    away: bool = False

    async def reserve(self, request: Reserve) -> Reservation:
        self.reserved.append(request)
        return Reservation(call_id=request.call_id, allowed=self.refuse is None, reason=self.refuse)

    async def settle(self, call: ModelCall) -> None:
        if self.away:
            raise HubUnreachable("the hub is away")
        self.settled.append(call)


@dataclass
class Outcome:
    """Everything one request gave."""

    events: list[ModelEvent]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def thought(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ThinkDelta))

    @property
    def done(self) -> Completed:
        last = self.events[-1]
        assert isinstance(last, Completed)
        return last


def talk(text: str, system: str = "You are Annabelle.") -> list[ModelMessage]:
    return [ModelRequest(parts=[SystemPromptPart(system), UserPromptPart(text)])]


def tool(name: str = "filer_read_file", **schema: Any) -> ToolSpec:
    properties = schema or {"path": {"type": "string"}}
    return ToolSpec(
        name=name,
        server="filer",
        original_name=name,
        description=f"Does what {name} does.",
        input_schema={"type": "object", "properties": properties, "required": list(properties)},
    )


async def ask(service: ModelService, messages: list[ModelMessage] | str, **fields: Any) -> Outcome:
    chosen = talk(messages) if isinstance(messages, str) else messages
    request = Request(call_id=new_id("call"), messages=chosen, **fields)
    async with aclosing(service.request(request)) as events:
        return Outcome([event async for event in events])


def settings_for(provider: str, url: str, **fields: Any) -> Settings:
    """Settings that point one provider at a URL; nothing else about it is special."""
    base: dict[str, Any] = {"thinker_llm_provider": provider, f"{provider}_base_url": url}
    if provider in ("groq", "anthropic", "openai", "openrouter", "compatible"):
        base[f"{provider}_api_key"] = KEY
    if provider == "compatible":
        base["compatible_model"] = "scripted"
    return Settings(**{**base, **fields})
