"""Tools the hub serves itself, under plain names; they pass the same doors as every other tool (RTR-05)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from annabelle.core.scans import Scan
from annabelle.core.tools import Audience, CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec

NATIVE = "hub"

OWN_WORDS = Scan(input=False, output=False)
"""For tools that give back nothing but the hub's own words, or what the doors of another tool have let through."""

NativeHandler = Callable[[JsonObject, CallContext], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class NativeTool:
    """One hub-native tool. Declare it idempotent when the handler keeps a call id from acting twice."""

    name: str
    description: str
    input_schema: JsonObject
    handler: NativeHandler
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    group: str = "Core"
    timeout_seconds: float | None = None
    audience: Audience = "everyone"
    scan: Scan = field(default_factory=lambda: Scan(input=False))
    """Its arguments go nowhere but into the hub. What it gives back may be what others wrote, unless it says not."""

    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            server=NATIVE,
            original_name=self.name,
            description=f"[Annabelle | {self.group}] {self.description}",
            input_schema=self.input_schema,
            annotations=self.annotations,
            group=self.group,
            audience=self.audience,
        )

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Ours to trust, unless the handler says otherwise of what it gives back."""
        result = await self.handler(arguments, context)
        return result if "trust" in result.model_fields_set else result.model_copy(update={"trust": "trusted"})
