"""Asks memory, at the start of a turn, for the profile and for what belongs to this message (CTX-01).

Both are one question where the agent may ask for both. It has two seconds, the first one of a process a little more:
memory opens its database when it is first asked, and the first message after a restart is the one that needs it most. A
memory that is down, slow or not allowed to this agent costs the turn what it would have known, and nothing else; the
trace says so.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

from annabelle.core.contract import ToolCall, ToolList, TurnBrief
from annabelle.core.errors import AnnabelleError, NotAllowed
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.thinker.context.profile import UserProfile
from annabelle.thinker.context.remembered import Memory, read_memories

GET_PROFILE: Final = "memory_get_profile"
RETRIEVE: Final = "memory_retrieve_memories"
MOST_MEMORIES: Final = 5
_SECONDS: Final = 2.0
_FIRST_SECONDS: Final = 6.0
_QUERY_CHARS: Final = 1_000
_TOO_SLOW: Final = "too slow"
_WORD = re.compile(r"\w")


class Asks(Protocol):
    """What recollection asks of the hub."""

    async def tools(self) -> ToolList: ...

    async def call(self, call: ToolCall, user_id: str) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """What came to mind; `trouble` says for the trace what did not, and why."""

    profile: UserProfile = field(default_factory=UserProfile)
    memories: tuple[Memory, ...] = ()
    kept_back: int = 0
    """How many more there are that others may have had a part in; the model can ask for them."""
    trouble: tuple[str, ...] = ()


class Recollection:
    """One per thinker. Its calls carry no call id: they have no effect, so nobody has to note that they were made."""

    def __init__(self, hub: Asks, seconds: float = _SECONDS, first_seconds: float = _FIRST_SECONDS) -> None:
        self._hub, self._seconds = hub, seconds
        self._patience = first_seconds

    async def recall(self, brief: TurnBrief, text: str) -> Recalled:
        """Everything memory has for this message; never an error."""
        trouble: list[str] = []
        allowed = await self._allowed(trouble)
        profile: object = None
        found: Mapping[str, object] | None = None
        if RETRIEVE in allowed and _WORD.search(text) is not None:
            # What comes to mind unasked is nobody else's words: else every turn would begin as one that has read them.
            about: JsonObject = {
                "query": text[:_QUERY_CHARS], "limit": MOST_MEMORIES, "fill": True, "trusted_only": True,
            }  # fmt: skip
            with_profile: JsonObject = {"include_profile": True} if GET_PROFILE in allowed else {}
            found = await self._ask(brief, RETRIEVE, about | with_profile, trouble)
            if with_profile and trouble[-1:] == [f"{RETRIEVE}: {NotAllowed.code}"]:
                # The person may have less than the agent: what they may have is still theirs.
                with_profile, found = {}, await self._ask(brief, RETRIEVE, about, trouble)
            profile = found.get("profile") if found is not None and with_profile else None
        # A search that failed is no reason to forget who one is. But one that took too long would take as long again.
        if found is None and GET_PROFILE in allowed and f"{RETRIEVE}: {_TOO_SLOW}" not in trouble:
            profile = await self._ask(brief, GET_PROFILE, {}, trouble)
        return Recalled(
            profile=UserProfile.read(cast("Mapping[str, object]", profile) if isinstance(profile, Mapping) else {}),
            memories=read_memories(found or {}),
            kept_back=_count((found or {}).get("kept_back")),
            trouble=tuple(dict.fromkeys(trouble)),
        )

    async def _allowed(self, trouble: list[str]) -> frozenset[str]:
        """The tools of memory this agent may use: what it may not ask, it is not told either."""
        try:
            async with asyncio.timeout(self._seconds):
                listed = await self._hub.tools()
        except (AnnabelleError, TimeoutError) as error:
            trouble.append(f"tools: {_reason(error)}")
            return frozenset()
        return frozenset(tool.name for tool in listed.tools if tool.server == "memory")

    async def _ask(
        self, brief: TurnBrief, name: str, arguments: JsonObject, trouble: list[str]
    ) -> Mapping[str, object] | None:
        call = ToolCall(name=name, arguments=arguments, message_id=brief.message_id)
        try:
            async with asyncio.timeout(self._patience):
                result = await self._hub.call(call, brief.user_id)
        except (AnnabelleError, TimeoutError) as error:
            trouble.append(f"{name}: {_reason(error)}")
            return None
        finally:
            self._patience = self._seconds
        if result.is_error or result.structured is None:
            trouble.append(f"{name}: {result.error.code if result.error is not None else 'no structured result'}")
            return None
        return result.structured


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _reason(error: AnnabelleError | TimeoutError) -> str:
    return error.code if isinstance(error, AnnabelleError) else _TOO_SLOW
