"""A turn with everything in it that a trace can show: chosen tools, compression, calls, a failed one, and scans."""

from __future__ import annotations

import json

from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Call, Reply, Rule, ScriptedServer

THRESHOLD = 1_000
ASKED = "Please create the file violet.md and read it."
ANSWER = "The violet answer."
SETTINGS = {"GUARDIAN_MCP_ENABLED": "true", "FACT_EXTRACTION_ENABLED": "false"}
_CALLS = (
    Call(name="filer_create_file", arguments={"path": "violet.md", "content": "violet words " * 600}),
    Call(name="filer_read_file", arguments={"path": "violet.md"}),
    Call(name="filer_read_file", arguments={"path": "no-such-file.md"}),
)


def compress_early(home: Home) -> Home:
    agent = {"agentId": "annabelle", "thinking": {"compressionThreshold": THRESHOLD}}
    home.agents_file.write_text(json.dumps({"agents": [agent]}))
    return home


def take_turn(hub: HubProcess, model: ScriptedServer, **place: str) -> JsonObject:
    """Has the turn, and returns its row in the list of traces once its trace is whole."""
    # Each once, in this order: compression may hide from the model how many calls it made.
    replies = [*(Reply(tool_calls=[call]) for call in _CALLS), Reply(text=ANSWER)]
    model.rules(*(Rule(match="violet.md", times=1, reply=reply) for reply in replies))
    assert hub.say(ASKED, **place)["state"] == "done"
    turn = hub.http.get("/traces").json()["turns"][0]
    path = f"/traces/{turn['traceId']}"
    wait_for(lambda: find_events(hub.http.get(path).json(), "message.delivered"), "the end of the trace")
    return turn


def find_events(trace: JsonObject, event: str) -> list[JsonObject]:
    return [one for one in trace["events"] if one["event"] == event]  # type: ignore[attr-defined]
