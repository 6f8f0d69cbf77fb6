"""The memory as the hub runs it: forked from the fork server, called through every door, killed and closed for real."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from annabelle.core.home import Home
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trust import Provenance
from annabelle.toolbox.catalogue import AgentPolicy
from annabelle.toolbox.config import ManifestFolder, ToolboxConfig, builtin_servers
from annabelle.toolbox.facade import Toolbox, ToolServers
from support.toolbox import QUICK, MemoryJournal, eventually

PERSON = CallContext(caller="cli", user_id="owner", agent_id="annabelle")
AGENT = CallContext(
    caller="agent",
    user_id="owner",
    agent_id="annabelle",
    message_id="msg_1",
    thread_id="thr_1",
    channel="cli",
    provenance=Provenance(trust="untrusted", origins=("web_fetch",)),
)


@pytest.fixture
async def toolbox(home: Home, tmp_path: Path) -> AsyncIterator[Toolbox]:
    folder = tmp_path / "servers"
    folder.mkdir()
    (folder / "memory").symlink_to(builtin_servers().path / "memory")
    config = ToolboxConfig(
        home=home,
        environment={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MEMORY_BACKUP_HOURS": "24"},
        external_file=home.config / "external-mcps.json",
        manifest_folders=(ManifestFolder(folder, "annabelle.servers"),),
        limits=QUICK,
    )
    box = Toolbox(ToolServers(config, MemoryJournal()))
    await box.start()
    yield box
    await box.stop()


async def call(box: Toolbox, tool: str, context: CallContext = PERSON, **arguments: object) -> ToolResult:
    policy = AgentPolicy() if context.caller == "agent" else None
    result = await box.call(f"memory_{tool}", arguments, context, policy)
    assert not result.is_error, result.text
    return result


def structure(result: ToolResult) -> JsonObject:
    assert result.structured is not None
    return result.structured


@pytest.mark.req("SRV-MEM", "MEM-09")
async def test_the_memory_is_forked_called_killed_and_closed_without_losing_anything(
    toolbox: Toolbox, home: Home
) -> None:
    assert toolbox.wants_provenance("memory_create_contact")
    shown = {spec.original_name for spec in toolbox.tools(AgentPolicy()).tools}
    assert {"create_contact", "backfill_embeddings"} <= shown
    assert not {"restore_backup", "list_backups", "forget_text"} & shown, "these are not for agents"
    assert not home.memory_file.exists(), "nobody asked yet"

    await call(toolbox, "create_contact", name="Grace", email="grace@example.org")
    made = await call(toolbox, "create_contact", AGENT, name="Mallory", email="m@example.org")
    listed = await call(toolbox, "list_contacts")
    assert (made.trust, listed.trust) == ("untrusted", "untrusted"), "one row of a page taints the list"

    (status,) = toolbox.servers()
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    await eventually(lambda: toolbox.servers()[0].restarts == 1 and toolbox.servers()[0].available)
    names = [row["name"] for row in structure(await call(toolbox, "list_contacts"))["contacts"]]  # type: ignore[union-attr]
    assert sorted(names) == ["Grace", "Mallory"]

    await toolbox.stop()
    log = home.memory_file.with_name(f"{home.memory_file.name}-wal")
    assert not log.exists() or log.stat().st_size == 0, "it was closed, not killed"
    assert "closed properly" not in (home.logs / "memory.log").read_text()
