"""The people the person knows: those in their contacts, and who writes to them under a name."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.policy.naming import content_words
from annabelle.policy.seen import SeenResult

_LIST: Final = "memory_list_contacts"
_MOST: Final = 200
_SECONDS: Final = 2.0
_MAIL: Final = "gmail_list_emails"
_MAILS: Final = 50
_MAIL_SECONDS: Final = 10.0
_NAMES: Final = 3


class Calls(Protocol):
    """The part of the toolbox that is needed."""

    async def __call__(self, name: str, arguments: JsonObject, context: CallContext) -> ToolResult: ...


class AddressBook:
    """Looks people up for policy, as if the agent had: that it did not is no reason to ask who Bob is."""

    def __init__(self, call: Calls) -> None:
        self._call = call

    async def people(self, context: CallContext) -> tuple[SeenResult, ...]:
        """The contacts of whom the agent works for; none where there is no memory, or none that answers."""
        found = await self._ask(_LIST, {"limit": _MOST}, context, _SECONDS)
        if found is None:
            return ()
        return (SeenResult(_LIST, "memory", trusted=True, structured=found, this_turn=False),)

    async def writers(self, names: frozenset[str], context: CallContext) -> dict[str, frozenset[str]]:
        """The addresses of all who write under these names: one who only says to be Carla is seen beside her."""
        found: dict[str, frozenset[str]] = {}
        for name in sorted(names)[:_NAMES]:
            asked: JsonObject = {"query": f"from:{name}", "max_results": _MAILS}
            mails = await self._ask(_MAIL, asked, context, _MAIL_SECONDS)
            if mails is not None:
                things = SeenResult(_MAIL, "mail", structured=mails).things
                named = (thing for thing in things if name in content_words(thing.sender))
                found[name] = frozenset(address for thing in named for address in thing.addresses("sender"))
        return found

    async def _ask(self, tool: str, arguments: JsonObject, context: CallContext, seconds: float) -> JsonObject | None:
        asked = CallContext(caller="hub", user_id=context.user_id, agent_id=context.agent_id)
        try:
            async with asyncio.timeout(seconds):
                found = await self._call(tool, arguments, asked)
        except (AnnabelleError, TimeoutError):
            return None
        return None if found.is_error else found.structured
