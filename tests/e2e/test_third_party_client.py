"""A client other people wrote lists and calls every built-in server, as any program that speaks MCP may."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from annabelle.core.home import Home
from servers.every_server import NAMES, build
from support.cheap_calls import CHEAP
from support.few_servers import FOLDERS
from support.timing import seconds

CLIENT = Path(__file__).parent.parent / "support" / "third_party_client.py"
ASKING = {"annabelle": {"agent_id": "annabelle", "user_id": "owner", "caller": "hub", "trust": "trusted"}}


@pytest.fixture
def python() -> Path:
    found = Path(os.environ["ANNABELLE_TEST_EXTERNAL_BIN"]) / "python"
    assert found.exists(), f"{found} is missing; `make test` installs it"
    return found


@pytest.mark.req("SRV-ALL")
def test_a_client_of_other_people_lists_and_calls_every_server(home: Home, python: Path, tmp_path: Path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ANNABELLE_HOME": str(home.root)}
    wanted = [
        {
            "name": name,
            "command": sys.executable,
            "args": ["-m", f"annabelle.servers.{FOLDERS[name]}"],
            "env": environment,
            "tool": CHEAP[name].tool,
            "arguments": CHEAP[name].arguments,
            "meta": ASKING,
        }
        for name in NAMES
    ]
    done = subprocess.run(
        [python, "-W", "ignore", CLIENT],
        input=json.dumps(wanted), capture_output=True, text=True, timeout=seconds(110), cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    answers = {answer["name"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert set(answers) == set(NAMES)
    for name, answer in answers.items():
        assert answer["tools"] == sorted(build(name).tools)
        code = answer["structured"]["error"]["code"] if answer["is_error"] else None
        assert code == CHEAP[name].code, answer
    figures = {name: {"tools": len(one["tools"]), "call_ms": one["call_ms"]} for name, one in answers.items()}
    sys.stdout.write(json.dumps({"third_party_client": figures}) + "\n")
