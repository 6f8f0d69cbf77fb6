"""What the hub plugs into every tool call: judge, approvals, audit, call journal and the rules for scanning."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from annabelle.core.errors import NotAllowed
from annabelle.core.ports import ApprovalPort, AuditTrail, Judge
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trace import TraceFile
from annabelle.core.trust import EVERY_SERVER, ScanDirections, ScanDirectionsChange

FailMode = Literal["closed", "open"]
ScanChanges = Mapping[str, ScanDirectionsChange]


class YesNeeded(NotAllowed):
    """The person has to be asked about the call, which is not possible where it was made."""


@dataclass(frozen=True, slots=True)
class GuardRules:
    """`changes` are in the order in which they are asked: an agent's own before those of the whole install."""

    enabled: bool = True
    fail_mode: FailMode = "closed"
    messages: bool = True
    changes: tuple[ScanChanges, ...] = ()

    def flags(self, server: str, own: ScanDirections) -> ScanDirections:
        """Which directions of this server are scanned; `own` is what its manifest or its entry says."""
        if not self.enabled:
            return ScanDirections(input=False, output=False)
        wanted = [
            found for one in self.changes for found in (one.get(server), one.get(EVERY_SERVER)) if found is not None
        ]
        going = next((one.input for one in wanted if one.input is not None), own.input)
        coming = next((one.output for one in wanted if one.output is not None), own.output)
        return ScanDirections(input=going, output=coming)


RulesFor = Callable[[str | None], GuardRules]
"""The rules for calls of this agent, by the config in force now; None is whoever is no agent."""


@dataclass(frozen=True, slots=True)
class GuardConfig:
    """How this install is guarded. Switched off, the guardian is not even started."""

    rules: RulesFor
    seconds: float = 15
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class CallHooks:
    """Without a judge every allowed call of an agent is made, without guarding nothing is scanned: that is for tests
    of the parts below alone. `redact` knows the secrets of this home, and learns those of external servers."""

    judge: Judge | None = None
    approvals: ApprovalPort | None = None
    audit: AuditTrail | None = None
    guard_config: GuardConfig | None = None
    redact: Redactor = field(default_factory=Redactor)
    traces: TraceFile | None = None


@dataclass(frozen=True, slots=True)
class JournalledCall:
    """One call as it is written down. The same id with another hash is another call, and refused."""

    call_id: str
    tool: str
    arguments_hash: str
    context: CallContext


@dataclass(frozen=True, slots=True)
class JournalState:
    """What is known of a call id: nothing yet, its result, or that it was started and never ended."""

    state: Literal["fresh", "finished", "in_doubt"]
    result: ToolResult | None = None


class CallJournal(Protocol):
    """Kept by the hub in its database. `begin` has committed when it returns; it raises Conflict for another hash."""

    async def begin(self, call: JournalledCall) -> JournalState: ...

    async def known(self, call_id: str) -> bool: ...

    async def finish(self, call_id: str, result: ToolResult) -> None: ...

    async def mark_unknown(self, call_id: str) -> None: ...


def arguments_hash(tool: str, arguments: JsonObject) -> str:
    """The fingerprint of a tool and its exact arguments, independent of the order of keys."""
    canonical = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()
