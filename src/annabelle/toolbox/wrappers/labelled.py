"""Says of every result where it came from, how far it may be trusted, and what policy knew of it before (POL-04)."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import Label
from annabelle.policy.tools.traits import Traits
from annabelle.toolbox.native import NATIVE


@dataclass(frozen=True, slots=True)
class Labelled:
    """`traits` is what we reviewed of the tool; none for one that somebody else brought along. `vouched`: the owner
    trusts that server to say what its ids stand for; its content stays foreign all the same.

    Trust comes from the hub's own tools, from a server that was asked to vouch for what it says, and from clocks and
    sums. Nothing else can make a result trusted, and nothing a server says of itself counts.
    """

    inner: ToolClient
    traits: Traits | None
    vouched: bool = False

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        result = await self.inner.call(tool, arguments, context)
        traits = self.traits or Traits()
        # A tool of the hub has said itself what it gives back: a subagent's report is not the hub's own word.
        own = traits.trusted and tool.server != NATIVE
        labels: list[Label] = [*result.labels, *context.labels]
        if traits.private or "read_private" in traits.classes:
            labels.append("private")
        if self.vouched:
            labels.append("vouched")
        known: dict[str, object] = {"source": traits.source, "labels": tuple(dict.fromkeys(labels))}
        if own:
            known["trust"] = "trusted"
        return result.model_copy(update=known)
