"""Something to see in every view: for tests, and for the pictures in the documentation."""

from __future__ import annotations

import json

from hub.hubs import HubProcess
from support.scripted_model import Call, Reply, Rule, ScriptedServer

_ANSWER = """Here is what I found for **Saturday**:

| train | leaves | arrives |
|---|---|---|
| ICE 1045 | 08:13 | 10:40 |
| ICE 547 | 09:13 | 11:42 |

1. The first one has a seat by the window.
2. It costs *39.90*. I asked before buying anything.
"""


def fill(hub: HubProcess, model: ScriptedServer) -> None:
    """Conversations, a question, a goal with notes and learnings, a reminder, memories."""
    post = hub.http.post
    (hub.home.workspace / "old plans.txt").write_text("Old plans.")
    delete = Call(name="filer_delete_file", arguments={"path": "old plans.txt"})
    model.rules(
        Rule(match="trains", results=0, reply=Reply(tool_calls=[Call(name="filer_list_grants")])),
        Rule(match="trains", reply=Reply(text=_ANSWER)),
        Rule(match="plans", results=0, reply=Reply(tool_calls=[delete])),
    )
    hub.say("Which trains go to Berlin on Saturday?", channel="page")
    hub.say("What do you think of my plans?", channel="page")
    goal = {
        "title": "Learn the piano",
        "description": "Play a prelude by Bach in June.",
        "learnings": ["Prefers mornings"],
        "checkIn": {"frequency": "weekdays", "time": "08:30"},
    }
    made = post("/goals", json=goal)
    assert made.status_code == 201, made.text
    post("/notes", json={"title": "Teacher", "content": "Mrs. Novak, on Tuesdays.", "goal": "1"})
    for fact, kind in (("My dog is called Rex", "background"), ("I like tea in the morning", "preference")):
        arguments = {"fact": fact, "category": kind}
        post("/tools/call", content=json.dumps({"name": "memory_store_fact", "arguments": arguments}))
    model.rules()
