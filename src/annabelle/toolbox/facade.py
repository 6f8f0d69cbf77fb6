"""The toolbox as the hub uses it: start, list, call, stop."""

from __future__ import annotations

from collections.abc import Iterable

from annabelle.core.contract import ToolList
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.journal import CallJournal
from annabelle.toolbox.native import NativeTool
from annabelle.toolbox.notices import ChangeListener, NoticeListener
from annabelle.toolbox.policy import AgentPolicy
from annabelle.toolbox.status import ServerStatus


class Toolbox:
    """Every tool of this install, behind one door.

    `call` raises UnknownTool, NotAllowed, InvalidArguments, ServerDown, ToolTimeout, OutcomeUnknown, Conflict or
    TurnCancelled; a tool that ran and failed comes back as a result with `is_error`.
    """

    def __init__(self, config: ToolboxConfig, journal: CallJournal) -> None:
        raise NotImplementedError

    async def start(self) -> None:
        """Start every server, the guardian first, and return when each has listed its tools or failed to."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop every server and leave no process behind. May be called twice, and after a failed start."""
        raise NotImplementedError

    def tools(self, policy: AgentPolicy | None = None) -> ToolList:
        """The tools a caller may use; without a policy, all of them."""
        raise NotImplementedError

    async def call(
        self, name: str, arguments: JsonObject, context: CallContext, policy: AgentPolicy | None = None
    ) -> ToolResult:
        """Call one tool. An agent must come with its policy; only people and the hub itself may come without one."""
        raise NotImplementedError

    async def cancel(self, call_id: str) -> bool:
        """Stop a call that is under way, at the server too; False when there is none of this id."""
        raise NotImplementedError

    def servers(self) -> list[ServerStatus]:
        """How each server is doing, by name."""
        raise NotImplementedError

    async def restart(self, name: str) -> ServerStatus:
        """Start a server again now, also one that was given up; NotFound for an unknown name."""
        raise NotImplementedError

    def add_native(self, tools: Iterable[NativeTool]) -> None:
        """Offer tools that the hub serves itself."""
        raise NotImplementedError

    def on_change(self, listener: ChangeListener) -> None:
        """Be told the new version whenever the list of tools changes."""
        raise NotImplementedError

    def on_notice(self, listener: NoticeListener) -> None:
        """Be told what a person should know; what happened before the first listener came is told to it at once."""
        raise NotImplementedError
