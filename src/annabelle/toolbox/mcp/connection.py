"""The connection to a server as the supervisor sees it, whatever carries it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from annabelle.core.secrets.redactor import SecretMatcher
from annabelle.core.tools import CallContext, JsonObject
from annabelle.toolbox.mcp.rpc import RpcAnswer


@dataclass(frozen=True, slots=True)
class ServerIntroduction:
    """What a server says about itself besides its tools. It is only compared, never used."""

    name: str = ""
    version: str = ""
    instructions: str = ""
    prompts: tuple[JsonObject, ...] = ()
    resources: tuple[JsonObject, ...] = ()

    def mask(self, secrets: SecretMatcher) -> ServerIntroduction:
        """A copy that can be stored: a server may repeat secrets it was given."""
        return ServerIntroduction(
            secrets.mask(self.name),
            secrets.mask(self.version),
            secrets.mask(self.instructions),
            tuple(map(secrets.mask_object, self.prompts)),
            tuple(map(secrets.mask_object, self.resources)),
        )


class Connection(Protocol):
    """A connected server. `ended` resolves with the reason when the connection ends."""

    @property
    def pid(self) -> int | None: ...

    @property
    def protocol(self) -> str | None: ...

    @property
    def garbage_lines(self) -> int: ...

    @property
    def ended(self) -> asyncio.Future[str]: ...

    @property
    def exit_reason(self) -> str | None:
        """A better reason than that of `ended`, once the connection is closed."""
        ...

    async def introduce(self) -> ServerIntroduction: ...

    async def list_tools(self) -> list[JsonObject]: ...

    async def call_tool(self, name: str, arguments: JsonObject, meta: JsonObject) -> RpcAnswer: ...

    async def ping(self) -> None: ...

    async def close(self, grace: float) -> None: ...


Connect = Callable[[Callable[[], None]], Awaitable[Connection]]
"""Opens a connection; the argument is called whenever the server says that its tools changed."""


def build_call_meta(context: CallContext, *, ours: bool) -> JsonObject:
    """The `_meta` of a request: who calls. Only our own servers learn the channel and what the caller has read."""
    facts: JsonObject = {
        "trace_id": context.trace_id,
        "agent_id": context.agent_id,
        "user_id": context.user_id,
        "chat_id": context.chat_id,
        "call_id": context.call_id,
        "message_id": context.message_id,
    }
    if ours:
        facts |= {"caller": context.caller, "thread_id": context.thread_id, "channel": context.channel}
    if ours and context.provenance is not None:
        facts |= {"trust": context.provenance.trust, "origins": list(context.provenance.origins)}
    if ours and context.secrets:
        facts["secrets"] = list(context.secrets)
        facts["secret_sites"] = {value: list(sites) for value, sites in context.secret_sites.items()}
    return {"annabelle": {key: value for key, value in facts.items() if value is not None}}
