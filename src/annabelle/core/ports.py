"""What lower rooms need from whoever stands above them."""

from __future__ import annotations

from typing import Protocol

from annabelle.core.contract import ModelCall, Reservation, Reserve
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import AuditKind, PolicyDecision, ScanOutcome


class Ledger(Protocol):
    """The one book of model costs: reserved before a call, settled after (CST-09)."""

    async def reserve(self, request: Reserve) -> Reservation: ...

    async def settle(self, call: ModelCall) -> None: ...


class ToolClient(Protocol):
    """One tool-serving party. Servers, native tools and every wrapper around them have this shape."""

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult: ...


class Judge(Protocol):
    """What may happen: decides on every call of an agent before it is made (POL-02, POL-04)."""

    async def judge(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> PolicyDecision: ...


class ApprovalPort(Protocol):
    """Where a person is asked. A yes is bound to tool and exact arguments, and used once (I-04)."""

    async def granted(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> bool:
        """Whether the person said yes to exactly this call; the yes is used up by this call id."""
        ...

    async def ask(
        self, tool: ToolSpec, arguments: JsonObject, context: CallContext, decision: PolicyDecision
    ) -> ToolResult:
        """Write the question down. The result carries its id and says that the call waits."""
        ...


class Scanner(Protocol):
    """Looks at what goes to a tool, what comes back, and what people send (GRD-01)."""

    async def scan(self, content: object, *, source: str, context: str) -> ScanOutcome:
        """What it found. Raises ScannerDown when it cannot look; whoever asked knows what holds then (GRD-05)."""
        ...


class AuditTrail(Protocol):
    """The chained record of what was done and decided (GRD-08, TRU-08). Never content, never a secret."""

    def note(self, kind: AuditKind, facts: JsonObject, trace_id: str | None = None) -> None: ...
