"""The people the person keeps in their contacts: whoever is said to get something may be one of them."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.policy.seen import SeenResult

_LIST: Final = "memory_list_contacts"
_MOST: Final = 200
_SECONDS: Final = 2.0


class Calls(Protocol):
    """The part of the toolbox that is needed."""

    async def __call__(self, name: str, arguments: JsonObject, context: CallContext) -> ToolResult: ...


class AddressBook:
    """Looks people up for policy, as if the agent had: that it did not is no reason to ask who Bob is."""

    def __init__(self, call: Calls) -> None:
        self._call = call

    async def people(self, context: CallContext) -> tuple[SeenResult, ...]:
        """The contacts of whom the agent works for; none where there is no memory, or none that answers."""
        asked = CallContext(caller="hub", user_id=context.user_id, agent_id=context.agent_id)
        try:
            async with asyncio.timeout(_SECONDS):
                found = await self._call(_LIST, {"limit": _MOST}, asked)
        except (AnnabelleError, TimeoutError):
            return ()
        if found.is_error or found.structured is None:
            return ()
        return (SeenResult(_LIST, "memory", trusted=True, structured=found.structured, this_turn=False),)
