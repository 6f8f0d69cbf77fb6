"""Interfaces that lower packages need and higher packages implement."""

from __future__ import annotations

from typing import Protocol

from annabelle.core.contract import ModelCall, Reservation, Reserve
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import AuditKind, PolicyDecision, ScanOutcome


class Ledger(Protocol):
    """Ledger of model costs: reserved before a call, settled after it (CST-09)."""

    async def reserve(self, request: Reserve) -> Reservation: ...

    async def settle(self, call: ModelCall) -> None: ...


class ToolClient(Protocol):
    """Serves tool calls: a server, native tools, or a wrapper around either."""

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult: ...


class Judge(Protocol):
    """Decides on every tool call of an agent before it is made (POL-02, POL-04)."""

    async def judge(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> PolicyDecision: ...


class ApprovalPort(Protocol):
    """Asks a person for approval. A yes covers one tool with exact arguments, once (I-04)."""

    async def granted(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> bool:
        """Whether the person approved exactly this call; this call id uses the approval up."""
        ...

    async def ask(
        self, tool: ToolSpec, arguments: JsonObject, context: CallContext, decision: PolicyDecision
    ) -> ToolResult:
        """Stores the question. The result carries its id and says that the call waits."""
        ...


class Scanner(Protocol):
    """Scans what goes to a tool, what comes back, and what people send (GRD-01)."""

    async def scan(self, content: object, *, source: str, context: str) -> ScanOutcome:
        """Returns the findings. Raises ScannerDown if it cannot scan; the caller decides what happens then (GRD-05)."""
        ...


class AuditTrail(Protocol):
    """Hash-chained record of actions and decisions (GRD-08, TRU-08), without content or secrets."""

    def note(self, kind: AuditKind, facts: JsonObject, trace_id: str | None = None) -> None: ...
