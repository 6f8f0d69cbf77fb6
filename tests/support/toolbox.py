"""What tests of the toolbox share: a journal in memory, a quick pace, and ways to wait without sleeping blindly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

import support.servers
from annabelle.core.errors import Conflict
from annabelle.core.tools import ToolResult
from annabelle.toolbox.call_hooks import JournalledCall, JournalState
from annabelle.toolbox.config import ToolboxConfig, ToolboxLimits
from support import timing

SERVERS = Path(support.servers.__file__).parent
TESTS = SERVERS.parent.parent
BOUND = 20.0

QUICK = ToolboxLimits(
    call_seconds=timing.seconds(10),
    start_seconds=timing.seconds(15),
    restart_base_seconds=0.05,
    restart_cap_seconds=0.2,
    max_restarts=4,
    wait_for_restart_seconds=timing.seconds(8),
    stop_grace_seconds=2,
    reload_quiet_ms=100,
)


class MemoryJournal:
    """What the hub keeps in its database, in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, str]] = {}
        self.results: dict[str, ToolResult] = {}

    async def begin(self, call: JournalledCall) -> JournalState:
        known = self.rows.get(call.call_id)
        if known is None:
            self.rows[call.call_id] = ("started", call.arguments_hash)
            return JournalState("fresh")
        if known[1] != call.arguments_hash:
            raise Conflict("another call has this id")
        if known[0] == "finished":
            return JournalState("finished", self.results[call.call_id])
        return JournalState("in_doubt")

    async def known(self, call_id: str) -> bool:
        return call_id in self.rows

    async def finish(self, call_id: str, result: ToolResult) -> None:
        self.rows[call_id] = ("finished", self.rows[call_id][1])
        self.results[call_id] = result

    async def mark_unknown(self, call_id: str) -> None:
        self.rows[call_id] = ("unknown", self.rows[call_id][1])

    def state(self, call_id: str) -> str:
        return self.rows[call_id][0]


async def eventually(condition: Callable[[], object], seconds: float = BOUND) -> None:
    """Return as soon as the condition holds; fail when it never does."""
    deadline = asyncio.get_running_loop().time() + timing.seconds(seconds)
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"{condition} never came true"
        await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def write_external(config: ToolboxConfig, servers: Mapping[str, object]) -> None:
    """As an editor does: a new file in the old one's place."""
    temporary = config.external_file.with_name(".external.tmp")
    temporary.write_text(json.dumps({"mcpServers": servers}))
    temporary.replace(config.external_file)
