"""Who may see and call a tool that is not for everyone."""

from __future__ import annotations

from typing import Literal

from annabelle.core.tools import Audience, ToolSpec

Caller = Literal["agent", "api", "cli", "hub"]

_OPEN_TO: dict[Caller, frozenset[Audience]] = {
    "agent": frozenset({"everyone"}),
    "api": frozenset({"everyone", "people"}),
    "cli": frozenset({"everyone", "people"}),
    "hub": frozenset({"everyone", "people", "hub"}),
}


def may_use(caller: Caller, tool: ToolSpec) -> bool:
    """Whether a tool is meant for this kind of caller at all; what an agent's policy says comes on top."""
    return tool.audience in _OPEN_TO[caller]
