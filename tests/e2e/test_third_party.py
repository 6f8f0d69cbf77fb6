"""Servers other people wrote come and go with the file while the hub runs, and serve people and turns."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from e2e.days import MakeHub, plan, ready, reply, write_external
from hub.hubs import wait_for

PROGRAMS = ("mcp-server-time", "mcp-server-git")


@pytest.fixture
def programs() -> Path:
    folder = Path(os.environ["ANNABELLE_TEST_EXTERNAL_BIN"])
    missing = [name for name in PROGRAMS if not (folder / name).exists()]
    assert not missing, f"{', '.join(missing)} not found in {folder}; `make test` installs them"
    return folder


@pytest.mark.req("EXT-02", "EXT-03", "RTR-06")
@pytest.mark.incident("I-25")
def test_two_real_servers_come_and_go_while_the_hub_runs(make_hub: MakeHub, programs: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    (repository / "letter.txt").write_text("Dear reader")
    hub = make_hub(SERVER_START_TIMEOUT_SECONDS="60").start()
    assert reply(hub.say(plan("nothing yet"))) == "nothing yet"
    known = {tool["name"] for tool in hub.http.get("/tools/list").json()["tools"]}
    clock = {"command": str(programs / "mcp-server-time"), "args": ["--local-timezone", "UTC"]}
    git = {"command": str(programs / "mcp-server-git"), "args": ["--repository", str(repository)]}
    write_external(hub, {"clock": clock, "git": git})
    ready(hub, "clock")
    ready(hub, "git")

    call = {"name": "clock_get_current_time", "arguments": {"timezone": "Europe/Berlin"}}
    assert "Europe/Berlin" in hub.http.post("/tools/call", json=call).json()["text"]
    wrong = hub.http.post("/tools/call", json={"name": "clock_get_current_time", "arguments": {"timezone": 5}})
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, "timezone")
    # The agent that runs already learns of the new tools by itself.
    told = hub.say(plan("{result}", ("git_git_status", {"repo_path": str(repository)})))
    assert "letter.txt" in reply(told)

    servers = {one["name"]: one["pid"] for one in hub.http.get("/status").json()["servers"]}
    write_external(hub, {"git": git})
    wait_for(lambda: not psutil.pid_exists(servers["clock"]), "the clock to be gone")
    assert hub.http.post("/tools/call", json=call).status_code == 404
    assert {one["name"]: one["pid"] for one in hub.http.get("/status").json()["servers"]}["git"] == servers["git"]
    (hub.home.config / "external-mcps.json").unlink()
    wait_for(lambda: not psutil.pid_exists(servers["git"]), "git to be gone")
    assert {tool["name"] for tool in hub.http.get("/tools/list").json()["tools"]} == known
