"""Servers that die, tools that go with them, and a guardian that is down: in a hub with real processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

import pytest

from annabelle.core.tools import JsonObject
from hub.hubs import HubProcess, wait_for


def findings(hub: HubProcess, check: str) -> list[JsonObject]:
    found = hub.http.get("/diagnosis").json()["findings"]
    return [one for one in found if one["check"] == check and one["severity"] != "ok"]


def server(hub: HubProcess, name: str) -> JsonObject:
    return next(one for one in hub.http.get("/status").json()["servers"] if one["name"] == name)


def kill_server(hub: HubProcess, name: str) -> None:
    pid = server(hub, name)["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: server(hub, name)["pid"] != pid, "the death of a server")


@pytest.mark.req("DIA-01")
def test_a_killed_server_is_critical_and_its_tools_are_missed(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub(SERVER_RESTART_BASE_SECONDS="60").start()
    assert findings(hub, "mcp-health") == []
    assert findings(hub, "tool-count-drift") == []
    assert findings(hub, "doc-freshness") == []
    kill_server(hub, "filer")
    (found,) = findings(hub, "mcp-health")
    assert (found["severity"], found["subject"]) == ("critical", "filer")
    assert found["action"] == "/logs filer says why."
    (drift,) = findings(hub, "tool-count-drift")
    tools = json.loads(hub.home.known_servers_file.read_text())["tools"]
    assert (drift["severity"], drift["text"]) == ("warning", f"There are {tools['filer']} tools fewer than before.")
    hub.http.post("/servers/filer/restart")
    wait_for(lambda: server(hub, "filer")["state"] == "ready", "a server that is back")
    assert findings(hub, "mcp-health") == findings(hub, "tool-count-drift") == []
    for change, said in ((2, 0), (3, 1), (-2, 0), (-3, 1)):
        counts = tools | {"filer": tools["filer"] + change}
        hub.home.known_servers_file.write_text(json.dumps({"servers": list(tools), "tools": counts}))
        assert len(findings(hub, "tool-count-drift")) == said, change


@pytest.mark.req("DIA-01")
@pytest.mark.parametrize(("mode", "severity"), [("closed", "critical"), ("open", "warning")])
def test_a_guardian_that_was_given_up_is_as_grave_as_what_follows_from_it(
    make_hub: Callable[..., HubProcess], mode: str, severity: str
) -> None:
    more = {"GUARDIAN_MCP_ENABLED": "true", "GUARDIAN_FAIL_MODE": mode}
    hub = make_hub(SERVER_MAX_RESTARTS="1", SERVER_RESTART_BASE_SECONDS="0.05", **more).start()
    assert findings(hub, "guardian-availability") == []
    kill_server(hub, "guardian")
    wait_for(lambda: server(hub, "guardian")["state"] == "ready", "a guardian that is back")
    kill_server(hub, "guardian")
    wait_for(lambda: server(hub, "guardian")["state"] == "down", "a guardian that is given up")
    assert [one["severity"] for one in findings(hub, "guardian-availability")] == [severity]


def test_a_guardian_that_is_switched_off_is_not_missed(shared_hub: HubProcess) -> None:
    assert findings(shared_hub, "guardian-availability") == []


@pytest.mark.req("DIA-01")
def test_an_external_server_that_waits_for_a_yes_is_a_warning(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub(EXTERNAL_SERVERS_NEED_YES="true")
    hub.home.config.mkdir(exist_ok=True)
    entry = {"mcpServers": {"strange": {"command": "true"}}}
    (hub.home.config / "external-mcps.json").write_text(json.dumps(entry))
    hub.start()
    (found,) = findings(hub, "mcp-health")
    assert (found["severity"], found["subject"]) == ("warning", "strange")
