"""Real processes: a turn waits for a yes, everything is killed, and the yes from the terminal is one effect."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from annabelle.core.home import Home
from cli.typed import Keyboard
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from support.timing import seconds

SERVER = Path(__file__).parents[1] / "support" / "witness_server.py"


@pytest.fixture
def witness(home: Home, tmp_path: Path) -> Path:
    """A file with one line for every effect of a server that nobody vouches for."""
    file = tmp_path / "witness.jsonl"
    home.prepare()
    entry = {"command": sys.executable, "args": [str(SERVER)], "env": {"WITNESS_FILE": str(file)}}
    (home.root / "config" / "external-mcps.json").write_text(json.dumps({"mcpServers": {"witness": entry}}))
    return file


@pytest.fixture
def failpoints(tmp_path: Path) -> Path:
    folder = tmp_path / "failpoints"
    folder.mkdir()
    return folder


@pytest.fixture
def hub(home: Home, model: ScriptedServer, witness: Path, failpoints: Path) -> Iterator[HubProcess]:
    model.rules(
        Rule(
            match="do the thing", results=0, reply=Reply(tool_calls=[Call(name="witness_mark", arguments={"key": "a"})])
        ),
        Rule(match="do the thing", results=1, reply=Reply(text="The thing is done.")),
    )
    made = HubProcess(home, model.openai_url, ANNABELLE_FAILPOINTS=str(failpoints)).start()
    yield made
    made.end()
    model.rules()


def offered(hub: HubProcess) -> bool:
    return any(tool["name"] == "witness_mark" for tool in hub.http.get("/tools/list").json()["tools"])


def kill_thinkers(hub: HubProcess) -> int:
    found = hub.thinkers()
    for child in found:
        child.kill()
    psutil.wait_procs(found, timeout=seconds(10))
    return len(found)


@pytest.mark.req("POL-03", "DUR-02")
@pytest.mark.incident("I-28")
def test_a_yes_after_everything_was_killed_is_exactly_one_effect(
    hub: HubProcess, home: Home, witness: Path, failpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = Keyboard(hub.environment, monkeypatch)
    wait_for(lambda: offered(hub), "the witness")
    asked = typed("ask", "Please do the thing")
    assert asked.code == 6, asked
    found = re.search(r"approve (apr_\w+)", asked.out)
    assert found is not None
    assert kill_thinkers(hub) == 1
    hub.kill()
    assert not witness.exists()

    hub.start()
    wait_for(lambda: offered(hub), "the witness")
    assert found[1] in typed.said("approvals")
    # The next thinker dies behind the call as well, before it knows what came of it.
    (failpoints / "thinker.after_tool").touch()
    approved = typed.said("approvals", "approve", found[1])
    assert approved == "Approved: witness_mark.\nThe thing is done.\n"
    assert [json.loads(line)["key"] for line in witness.read_text().splitlines()] == ["a"]
    assert [file.name.partition("-")[0] for file in failpoints.iterdir()] == ["thinker.after_tool.hit"]
    assert "State: approved and done" in typed.said("approvals", "show", found[1])
