"""Whatever dies, nothing is left behind, and what should live comes back."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from annabelle.core.tools import CallContext
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.process import fork_launcher
from annabelle.toolbox.process.forkserver_process import start_forkserver
from support.timing import seconds
from support.toolbox import TESTS, alive, eventually, write_external

Start = Callable[[ToolboxConfig], Awaitable[Toolbox]]
WithServers = Callable[..., ToolboxConfig]


def grandparent(pids: Path) -> dict[str, object]:
    return {
        "command": sys.executable,
        "args": ["-m", "support.servers.grandparent", str(pids)],
        "env": {"PYTHONPATH": str(TESTS)},
    }


def noted(pids: Path) -> list[int]:
    return [int(line) for line in pids.read_text().split()] if pids.exists() else []


@pytest.fixture
def started_forkserver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork server that this process starts itself, as a hub does."""
    monkeypatch.setattr(fork_launcher, "start_forkserver", start_forkserver)


def forkserver_of(toolbox: Toolbox) -> psutil.Process:
    [forkserver] = [
        child for child in psutil.Process().children() if "annabelle.toolbox.process.forkserver" in child.cmdline()
    ]
    return forkserver


@pytest.mark.req("HUB-05")
@pytest.mark.incident("I-25")
@pytest.mark.parametrize("mode", ["forkserver", "plain"])
async def test_a_hub_killed_with_9_leaves_no_process(tmp_path: Path, mode: str) -> None:
    root, pids = tmp_path / "killed", tmp_path / "pids"
    (root / "config").mkdir(parents=True)
    (root / "config" / "external-mcps.json").write_text(json.dumps({"mcpServers": {"family": grandparent(pids)}}))
    hub = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "support.toolbox_driver",
        str(root),
        mode,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    assert hub.stdout is not None
    line = await asyncio.wait_for(hub.stdout.readline(), seconds(60))
    told = json.loads(line)
    await eventually(lambda: len(noted(pids)) == 2)
    family = psutil.Process(hub.pid).children(recursive=True)
    everyone = {*(process.pid for process in family), told["left"]["child"], *noted(pids), *told["servers"].values()}
    assert len(everyone) >= 6
    hub.kill()
    await hub.wait()
    await eventually(lambda: not [pid for pid in everyone if alive(pid)])


@pytest.mark.req("HUB-03")
@pytest.mark.incident("I-25")
@pytest.mark.usefixtures("started_forkserver")
async def test_a_killed_fork_server_takes_its_servers_along_and_all_come_back(
    with_servers: WithServers, start: Start, person: CallContext, tmp_path: Path
) -> None:
    config = with_servers("echo", "witness")
    pids = tmp_path / "pids"
    write_external(config, {"family": grandparent(pids)})
    toolbox = await start(config)
    await eventually(lambda: len(noted(pids)) == 2)
    forkserver = forkserver_of(toolbox)
    before = {*noted(pids), *(process.pid for process in forkserver.children(recursive=True))}
    forkserver.kill()
    await eventually(lambda: not [pid for pid in before if alive(pid)])
    assert (await toolbox.call("echo_say", {"text": "back"}, person)).structured == {"said": "back"}
    await eventually(lambda: all(status.available for status in toolbox.servers()))
    assert [status.restarts for status in toolbox.servers()] == [1, 1, 1]
    assert forkserver_of(toolbox).pid != forkserver.pid


@pytest.mark.incident("I-25")
@pytest.mark.parametrize("mode", ["forkserver", "plain"])
async def test_a_removed_external_server_takes_its_grandchildren_along(
    with_servers: WithServers, start: Start, tmp_path: Path, mode: str
) -> None:
    config = with_servers(use_forkserver=mode == "forkserver")
    pids = tmp_path / "pids"
    write_external(config, {"family": grandparent(pids)})
    toolbox = await start(config)
    await eventually(lambda: len(noted(pids)) == 2)
    write_external(config, {})
    await eventually(lambda: toolbox.servers() == [])
    await eventually(lambda: not [pid for pid in noted(pids) if alive(pid)])


@pytest.mark.incident("I-25")
async def test_a_killed_reaper_leaves_nothing_below_it(
    with_servers: WithServers, start: Start, person: CallContext, tmp_path: Path
) -> None:
    config = with_servers()
    pids = tmp_path / "pids"
    write_external(config, {"family": grandparent(pids)})
    toolbox = await start(config)
    await eventually(lambda: len(noted(pids)) == 2)
    [status] = toolbox.servers()
    assert status.pid is not None
    reaper = psutil.Process(status.pid)
    before = {reaper.pid, *noted(pids), *(process.pid for process in reaper.children(recursive=True))}
    assert len(before) == 4
    reaper.kill()
    await eventually(lambda: not [pid for pid in before if alive(pid)])
    assert not (await toolbox.call("family_who", {}, person)).is_error, "and the server is back"


@pytest.mark.incident("I-25")
async def test_an_external_server_that_is_killed_takes_its_own_children_along(
    with_servers: WithServers, start: Start, person: CallContext, tmp_path: Path
) -> None:
    config = with_servers()
    pids = tmp_path / "pids"
    write_external(config, {"family": grandparent(pids)})
    toolbox = await start(config)
    await eventually(lambda: len(noted(pids)) == 2)
    who = (await toolbox.call("family_who", {}, person)).structured
    assert who is not None
    orphans = noted(pids)
    os.kill(int(str(who["pid"])), signal.SIGKILL)
    await eventually(lambda: not [pid for pid in orphans if alive(pid)])


@pytest.mark.incident("I-25")
async def test_what_a_built_in_server_started_ends_with_it(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    toolbox = await start(with_servers("awkward"))
    left = (await toolbox.call("awkward_leave_a_child", {}, person)).structured
    assert left is not None
    [status] = toolbox.servers()
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    await eventually(lambda: not alive(int(str(left["child"]))))
    await eventually(lambda: toolbox.servers()[0].available)


@pytest.mark.usefixtures("started_forkserver")
async def test_ctrl_c_in_the_terminal_does_not_reach_the_servers(with_servers: WithServers, start: Start) -> None:
    toolbox = await start(with_servers("echo"))
    [status] = toolbox.servers()
    assert status.pid is not None
    own = os.getpgid(0)
    assert os.getpgid(status.pid) != own
    assert os.getpgid(forkserver_of(toolbox).pid) != own
