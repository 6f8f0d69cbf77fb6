"""Opens the workspace of a turn: for tasks always, for conversations where the agent is set to have one (CMP-01)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Protocol

from annabelle.core.contract import ThinkingSettings, ToolCall, TurnBrief
from annabelle.core.tools import ToolResult
from annabelle.thinker.compress.workspace import ThreadWorkspace

FOLDER: Final = "workspaces"
READ_FILE: Final = "filer_read_file"
_THREAD_ID: Final = re.compile(r"[\w-]{1,120}")


class _Tools(Protocol):
    async def call(self, call: ToolCall, user_id: str) -> ToolResult: ...


class Workspaces:
    """The workspaces of one agent, in its folder."""

    def __init__(self, folder: Path, settings: ThinkingSettings, hub: _Tools) -> None:
        self._folder, self._settings, self._hub = folder / FOLDER, settings, hub

    async def open(self, brief: TurnBrief) -> ThreadWorkspace | None:
        """The workspace of this turn's thread, or None where there is none."""
        if (brief.conversational and not self._settings.workspace) or _THREAD_ID.fullmatch(brief.thread_id) is None:
            return None

        async def read(path: str) -> ToolResult:
            # Through the hub like any call of the agent: with its rights, and what is untrusted is known as such.
            call = ToolCall(name=READ_FILE, arguments={"path": path}, message_id=brief.message_id)
            return await self._hub.call(call, brief.user_id)

        return await ThreadWorkspace.open(self._folder, brief.thread_id, read)
