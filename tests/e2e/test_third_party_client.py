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
from support.warm_process import TEMPLATE, WarmProcess, can_fork

CLIENT = Path(__file__).parent.parent / "support" / "third_party_client.py"
ASKING = {"annabelle": {"agent_id": "annabelle", "user_id": "owner", "caller": "hub", "trust": "trusted"}}


@pytest.fixture
def python() -> Path:
    found = Path(os.environ["ANNABELLE_TEST_EXTERNAL_BIN"]) / "python"
    assert found.exists(), f"{found} is missing; `make test` installs it"
    return found


def fork(name: str, environment: dict[str, str]) -> tuple[WarmProcess, tuple[int, int]]:
    """A server, and the ends of its streams that a client reads and writes."""
    (child_in, writing), (reading, child_out) = os.pipe(), os.pipe()
    program = f"annabelle.servers.{FOLDERS[name]}.__main__"
    assert sys.__stderr__ is not None
    process = TEMPLATE.fork(program, environment, [child_in, child_out, sys.__stderr__.fileno()])
    os.close(child_in)
    os.close(child_out)
    return process, (reading, writing)


@pytest.mark.req("SRV-ALL")
def test_a_client_of_other_people_lists_and_calls_every_server(home: Home, python: Path, tmp_path: Path):
    """It starts one of them itself; the others are forked."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ANNABELLE_HOME": str(home.root)}
    forked = {name: fork(name, environment) for name in NAMES[1:] if can_fork(environment)}
    wanted = [
        {
            "name": name,
            "pipes": forked[name][1] if name in forked else None,
            "command": sys.executable,
            "args": ["-m", f"annabelle.servers.{FOLDERS[name]}"],
            "env": environment,
            "tool": CHEAP[name].tool,
            "arguments": CHEAP[name].arguments,
            "meta": ASKING,
        }
        for name in NAMES
    ]
    ends = [end for _, both in forked.values() for end in both]
    client = subprocess.Popen(
        [python, "-W", "ignore", CLIENT],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=environment, pass_fds=ends,
    )  # fmt: skip
    for end in ends:
        os.close(end)  # or no server would learn that the client left
    with client:
        try:
            out, errors = client.communicate(json.dumps(wanted), timeout=seconds(110))
        finally:
            client.kill()
    assert client.returncode == 0, errors[-2000:]
    assert [process.wait(seconds(30)) for process, _ in forked.values()] == [0] * len(forked)
    answers = {answer["name"]: answer for answer in map(json.loads, out.splitlines())}
    assert set(answers) == set(NAMES)
    for name, answer in answers.items():
        assert answer["tools"] == sorted(build(name).tools)
        code = answer["structured"]["error"]["code"] if answer["is_error"] else None
        assert code == CHEAP[name].code, answer
    figures = {name: {"tools": len(one["tools"]), "call_ms": one["call_ms"]} for name, one in answers.items()}
    sys.stdout.write(json.dumps({"third_party_client": figures}) + "\n")
