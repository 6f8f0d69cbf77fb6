"""The people beside the owner: who they are now, and which tools are theirs (I-30).

Servers work on the owner's machine, so other people reach none of them but the memory, where every row has its owner;
neither themselves nor through an agent that answers them. `allowedTools` in users.json gives somebody more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from annabelle.core.errors import ConfigMistake, NotAllowed
from annabelle.core.tools import ToolSpec
from annabelle.hub.notices import Notices
from annabelle.hub.security.users_file import Users, read_users
from annabelle.toolbox.native import NATIVE
from annabelle.toolbox.policy import AgentPolicy

_log = logging.getLogger(__name__)
LOOK_SECONDS: Final = 1.0
TOPIC: Final = "users_config"
MEMORY: Final = "memory"
# These read or replace files of the home, in which other people's memory may stand.
_OWNERS: Final = frozenset({"memory_import_memory", "memory_list_backups", "memory_restore_backup"})
_IN_TURNS: Final = frozenset(
    {"send_message", "send_telegram", "get_tool_catalog", "search_tools", "store_fact", "search_memories"}
)

Stamp = tuple[int, int, int]


class People:
    """Reads users.json at the start and whenever it changes; a bad edit leaves the last good one in force."""

    def __init__(self, path: Path, notices: Notices, on_change: Callable[[Users], None]) -> None:
        self._path, self._notices, self._on_change = path, notices, on_change
        self._users = Users()
        self._stamp: Stamp | None = None
        self._task: asyncio.Task[None] | None = None
        self.look()

    def look(self) -> bool:
        """Read the file if it changed since the last look; whether it did."""
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._users = read_users(self._path)
        except ConfigMistake as mistake:
            self._notices.add(TOPIC, f"{mistake.message} The last good one stays in force.", level="error")
            return False
        self._notices.clear(TOPIC)
        self._on_change(self._users)
        return True

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=LOOK_SECONDS)

    def policy(self, user_id: str, tools: tuple[ToolSpec, ...], *, in_turn: bool) -> AgentPolicy:
        """What a person may call, by the exact names of what there is; `in_turn`: what an agent may for them."""
        user = self._users.get(user_id)
        more = AgentPolicy(allowed=user.allowed_tools if user is not None else ())
        names = [spec.name for spec in tools if _theirs(spec, in_turn) or more.permits(spec.name)]
        return AgentPolicy(allowed=tuple(names))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()


def refusal(user_id: str, tool: str) -> NotAllowed:
    """Why a person may not use a tool that is there."""
    return NotAllowed(
        f"{user_id} may not use {tool}.", hint="The owner of this home decides it: allowedTools in config/users.json."
    )


def _theirs(spec: ToolSpec, in_turn: bool) -> bool:
    if spec.name in _OWNERS:
        return False
    if spec.server == MEMORY:
        return True
    return spec.server == NATIVE and (spec.name.startswith("memory_") or (in_turn and spec.name in _IN_TURNS))


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
