"""Servers other people wrote, as a user would add them. They live in an environment of their own."""

import os
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.core.tools import CallContext
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.facade import Toolbox
from support.toolbox import QUICK, TESTS, alive, eventually, write_external

Start = Callable[[ToolboxConfig], Awaitable[Toolbox]]
WithServers = Callable[..., ToolboxConfig]


@pytest.fixture(scope="module")
def programs() -> Path:
    folder = Path(os.environ.get("ANNABELLE_TEST_EXTERNAL_BIN") or TESTS.parent / ".venv-external" / "bin")
    missing = [name for name in ("mcp-server-time", "mcp-server-git") if not (folder / name).exists()]
    assert not missing, f"{', '.join(missing)} not found in {folder}; `make test` installs them"
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    for command in (
        ["init", "-q", "-b", "main"],
        ["-c", "user.name=T", "-c", "user.email=t@example.test", "commit", "-q", "--allow-empty", "-m", "First words"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True, env={**os.environ, "HOME": str(tmp_path)})
    return folder


@pytest.mark.req("EXT-02", "EXT-03")
async def test_two_real_servers_are_added_used_and_removed_while_running(
    with_servers: WithServers, start: Start, person: CallContext, programs: Path, repository: Path
) -> None:
    config = with_servers(limits=replace(QUICK, start_seconds=60, call_seconds=60))
    toolbox = await start(config)
    write_external(
        config,
        {
            "time": {"command": str(programs / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
            "git": {"command": str(programs / "mcp-server-git"), "args": ["--repository", str(repository)]},
        },
    )
    await eventually(lambda: len(toolbox.servers()) == 2 and all(s.available for s in toolbox.servers()), 90)
    pids = [status.pid for status in toolbox.servers()]
    now = await toolbox.call("time_get_current_time", {"timezone": "Europe/Berlin"}, person)
    assert "Europe/Berlin" in now.text
    log = await toolbox.call("git_git_log", {"repo_path": str(repository)}, person)
    assert "First words" in log.text
    assert all(tool.description.startswith(("[Time | External]", "[Git | External]")) for tool in toolbox.tools().tools)
    write_external(config, {})
    await eventually(lambda: toolbox.servers() == [] and toolbox.tools().tools == ())
    await eventually(lambda: not [pid for pid in pids if pid is not None and alive(pid)])
