"""What tests of bad days share: servers that misbehave, ways to wait, and what a clear sentence is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping

from hub.hubs import HubProcess, wait_for
from support.timing import seconds
from support.toolbox import TESTS

MakeHub = Callable[..., HubProcess]


def bad_server(name: str, **environment: str) -> dict[str, object]:
    """The entry of one of the tests' servers, as a user writes it into external-mcps.json."""
    return {
        "command": sys.executable,
        "args": ["-m", f"support.servers.{name}"],
        "env": {"PYTHONPATH": str(TESTS), **environment},
    }


def write_external(hub: HubProcess, servers: Mapping[str, object]) -> None:
    """As an editor does: a new file in the old one's place."""
    temporary = hub.home.config / ".external.tmp"
    temporary.write_text(json.dumps({"mcpServers": servers}))
    temporary.replace(hub.home.config / "external-mcps.json")


def ready(hub: HubProcess, server: str) -> None:
    """Wait until a server serves."""

    def available() -> bool:
        servers = hub.http.get("/status").json()["servers"]
        return any(one["name"] == server and one["available"] for one in servers)

    wait_for(available, f"{server} to be ready", 60)


def reply(answer: dict[str, object]) -> str:
    assert isinstance(answer["reply"], dict), answer
    return str(answer["reply"]["text"])


def reply_after_yes(hub: HubProcess, text: str) -> str:
    """What comes of a message for somebody who says yes to whatever is asked."""
    answer = hub.say(text)
    while asked := answer["reply"]["metadata"].get("approvals"):  # type: ignore[index,call-overload]
        said = [hub.http.post(f"/approvals/{one}", json={"verdict": "approve"}).json() for one in asked]
        answer = hub.http.get(f"/messages/{said[-1]['messageId']}", params={"wait": seconds(50)}).json()
    return reply(answer)


def one_sentence(words: str) -> bool:
    """Whether this is a sentence with its hint, and no traceback."""
    return len(words.strip().splitlines()) == 1 and words.rstrip().endswith(".") and "Traceback" not in words


def refused(hub: HubProcess) -> tuple[int, str]:
    """The exit code and words of a hub that does not start."""
    process = hub.spawn()
    try:
        _, words = process.communicate(timeout=seconds(60))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, words


def plan(say: str, *calls: tuple[str, dict[str, object]]) -> str:
    """A text that makes the scripted model call these tools and then say this."""
    return json.dumps({"calls": [{"name": name, "arguments": arguments} for name, arguments in calls], "say": say})
