"""A secret on its whole way: read by a model as a handle, used by a tool as a value, and written down by nobody."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from e2e.days import MakeHub, ready, reply
from hub.hubs import HubProcess, wait_for
from support.canary import Canary
from support.few_servers import only
from support.op_stand_in import StandIn
from support.scripted_model import ScriptedServer, plan_text
from support.timing import seconds

SECRET = Canary("Velmora-7731-Quist!")
MANIFEST = """name = "typist"
label = "Typist"
group = "web"
keywords = ["type"]
env = ["TYPED_FILE"]
takes_secrets = ["type_it", "refuse_it"]
"""
SERVER = '''"""Types what it is given into a file, and repeats it everywhere it can."""
import logging, os
from typing import Annotated
from pydantic import Field
from annabelle.core.errors import RetryByModel
from annabelle.servers.kit import Result, ToolServer, run, tool

Text = Annotated[str, Field(description="What to type")]

class Typed(Result):
    text_typed: str

class Typist:
    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def type_it(self, text: Text) -> Typed:
        """Type a text."""
        with open(os.environ["TYPED_FILE"], "a") as file:
            file.write(text)
        logging.getLogger("typist").warning("typed %s", text)
        return Typed(text_typed="typed: " + text)

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def refuse_it(self, text: Text) -> Typed:
        """Refuse a text."""
        raise RetryByModel("No field takes " + text, hint="Not " + text)

def main() -> None:
    run(lambda: ToolServer("typist", [Typist()]))
'''


@pytest.fixture
def typist(tmp_path: Path) -> dict[str, str]:
    """A server of our shape that takes secrets, with the settings that bring it in."""
    folder = tmp_path / "hands" / "typist"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):
        (package / "__init__.py").write_text("")
    (folder / "manifest.toml").write_text(MANIFEST)
    (folder / "__main__.py").write_text(SERVER)
    return {"EXTRA_SERVERS_PATH": str(folder.parent), "TYPED_FILE": str(tmp_path / "typed.txt")}


@pytest.mark.req("POL-06", "SRV-OPW", "TRC-03")
def test_a_tool_gets_the_secret_and_no_byte_of_the_home_does(
    make_hub: MakeHub, rules: ScriptedServer, typist: dict[str, str], tmp_path: Path
):
    op = StandIn(tmp_path / "op-bin")
    op.know(secrets={"op://Private/Bank/password": SECRET.text})
    path = f"{op.folder}:{os.environ['PATH']}"
    hub = make_hub(PATH=path, **typist, **only("filer", "memory", "onepassword", "guardian")).start()
    ready(hub, "typist")
    ready(hub, "onepassword")

    def do(name: str, arguments: dict[str, object]) -> str:
        """The model calls a tool and says what came back; where it is asked, the person reads the call and says yes."""
        said = reply(hub.say(plan_text([(name, arguments)], say="I got {result}")))
        for question in _open(hub):
            assert (question["tool"], question["arguments"]) == (name, arguments), "what is asked about is the handle"
            assert all(str(value) in said for value in arguments.values()), "and so it stands in the chat"
            asked.append(name)
            said = _yes(hub, question["id"])
        return said

    asked: list[str] = []

    told = do("onepassword_read_secret", {"reference": "op://Private/Bank/password"})
    found = re.search(r"secret://onepassword/[a-z0-9]+", told)
    assert found, told
    handle = found[0]
    assert f"typed: {handle}" in do("typist_type_it", {"text": f"<{handle}>"}).replace("<", "").replace(">", "")
    assert Path(typist["TYPED_FILE"]).read_text() == f"<{SECRET.text}>"
    assert f"No field takes {handle}" in do("typist_refuse_it", {"text": handle})
    assert "does not take secrets" in do("filer_create_file", {"path": "a.txt", "content": f"it is {handle}"})
    unknown = do("typist_type_it", {"text": "secret://onepassword/aaaaaaaaaaaaaaaa"})
    assert "Read the secret again" in unknown
    assert asked.count("typist_type_it") >= 1, "or this day asked nobody"
    audit = hub.http.get("/audit").text
    assert "typist_type_it" in audit
    assert not SECRET.within(audit.encode())
    reveal = hub.http.post("/tools/call", json={"name": "onepassword_reveal", "arguments": {"handle": handle}})
    assert reveal.status_code == 403
    assert not any(SECRET.within(json.dumps(one.body).encode()) for one in rules.requests)
    hub.stop()
    assert (hub.home.logs / "typist.log").read_text().count("typed <«redacted»>") == 1
    assert SECRET.files(hub.home.root) == set()


def _open(hub: HubProcess) -> list[dict[str, Any]]:
    return [one for one in hub.http.get("/approvals").json()["approvals"] if one["state"] == "pending"]


def _yes(hub: HubProcess, approval_id: str) -> str:
    """Approve a call; what the turn says in the end."""
    where = f"/approvals/{approval_id}"
    answered = hub.http.post(where, json={"verdict": "approve"})
    assert answered.status_code == 200, answered.text
    going_on = wait_for(lambda: hub.http.get(where).json()["continuedBy"], "the turn to go on")

    def ended() -> dict[str, object] | None:
        outcome = hub.http.get(f"/messages/{going_on}", params={"wait": seconds(5)}).json()
        return outcome if outcome["state"] in ("done", "failed") else None

    return reply(wait_for(ended, "the end of the turn", 60))
