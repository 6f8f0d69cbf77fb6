"""`annabelle threads`: what was said and done, found again, and tried again."""

from __future__ import annotations

import json

import pytest

from cli.terminal import run
from support.scripted_model import Reply, Rule, ScriptedServer, plan_text


@pytest.mark.req("THR-01", "THR-02")
def test_a_conversation_is_listed_shown_with_its_tool_calls_and_found(running: dict[str, str]) -> None:
    said = plan_text([("filer_list_grants", {})], say="Das Klavier steht in Köln.")
    assert run(running, "ask", "--new", said).returncode == 0
    (thread, *_) = json.loads(run(running, "threads", "--json").stdout)["threads"]
    assert thread["id"] in run(running, "threads", "list").stdout

    lines = run(running, "threads", "show", thread["id"]).stdout.splitlines()
    assert lines[0].endswith(f"you: {said}")
    assert lines[1] == "  ✓ Called filer list grants."
    assert lines[2].endswith("Annabelle: Das Klavier steht in Köln.")
    entries = json.loads(run(running, "threads", "show", thread["id"], "--json").stdout)["messages"]
    assert [one["type"] for one in entries] == ["text", "tool", "text"]

    last = run(running, "threads", "show", thread["id"], "--limit", "1").stdout
    assert "Klavier" in last
    assert f"--before {entries[2]['position']}" in last
    above = run(running, "threads", "show", thread["id"], "--before", str(entries[2]["position"])).stdout
    assert above.splitlines() == lines[:2]

    found = run(running, "threads", "search", "klavier", "KÖLN").stdout
    assert thread["id"] in found
    assert "Das Klavier steht in Köln." in found
    assert run(running, "threads", "search", "xylophone").stdout.strip() == "Nothing was found."


@pytest.mark.req("THR-03", "THR-05")
def test_what_failed_is_tried_again_or_put_aside(running: dict[str, str], model: ScriptedServer) -> None:
    model.rules(Rule(match="odd", reply=Reply(text="")))
    try:
        assert run(running, "ask", "--new", "an odd thing").returncode == 1
        (thread, *_) = json.loads(run(running, "threads", "--json").stdout)["threads"]
        error = json.loads(run(running, "threads", "show", thread["id"], "--json").stdout)["messages"][-1]
        assert (error["source"], error["metadata"]["retryable"]) == ("error", True)
        shown = run(running, "threads", "show", thread["id"]).stdout
        assert f"annabelle threads retry {thread['id']} {error['id']}" in shown
        model.rules(Rule(match="odd", reply=Reply(text="fine now")))
        again = run(running, "threads", "retry", thread["id"], error["id"])
        assert (again.returncode, again.stderr) == (0, "")
        message = json.loads(run(running, "threads", "retry", thread["id"], error["id"], "--json").stdout)
        assert message["duplicate"] is True
        assert message["messageId"] in again.stdout
        assert "(was tried again)" in run(running, "threads", "show", thread["id"]).stdout

        model.rules(Rule(match="flaky", reply=Reply.failing(401, "no")))
        assert run(running, "ask", "--new", "a flaky thing").returncode == 1
        (thread, *_) = json.loads(run(running, "threads", "--json").stdout)["threads"]
        error = json.loads(run(running, "threads", "show", thread["id"], "--json").stdout)["messages"][-1]
        refused = run(running, "threads", "retry", thread["id"], error["id"])
        assert refused.returncode == 2
        assert "cannot help" in refused.stderr
        assert run(running, "threads", "dismiss", thread["id"], error["id"]).returncode == 0
        assert "(seen)" in run(running, "threads", "show", thread["id"]).stdout
    finally:
        model.rules()
