"""What the toolbox asks of whoever remembers tool calls, so that each call id has one effect (DUR-03)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal, Protocol

from annabelle.core.tools import CallContext, JsonObject, ToolResult


@dataclass(frozen=True, slots=True)
class JournalledCall:
    """One call as it is written down. The same id with another hash is another call, and refused."""

    call_id: str
    tool: str
    arguments_hash: str
    context: CallContext


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of a call id: nothing yet, its result, or that it was started and never ended."""

    state: Literal["fresh", "finished", "in_doubt"]
    result: ToolResult | None = None


class CallJournal(Protocol):
    """Kept by the hub in its database. `begin` has committed when it returns; it raises Conflict for another hash."""

    async def begin(self, call: JournalledCall) -> Begun: ...

    async def known(self, call_id: str) -> bool: ...

    async def finish(self, call_id: str, result: ToolResult) -> None: ...

    async def mark_unknown(self, call_id: str) -> None: ...


def arguments_hash(tool: str, arguments: JsonObject) -> str:
    """The fingerprint of a tool and its exact arguments, independent of the order of keys."""
    canonical = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()
