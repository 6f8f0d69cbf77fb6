"""`annabelle tasks`: what agents handed on."""

from __future__ import annotations

import json

import pytest

from cli.terminal import run
from support.scripted_model import plan_text


@pytest.mark.req("RTR-05")
def test_a_queued_call_is_listed_with_what_became_of_it(running: dict[str, str]) -> None:
    assert "Nothing was handed on yet" in run(running, "tasks").stdout
    action: dict[str, object] = {"type": "tool_call", "toolName": "get_status", "parameters": {}}
    plan = plan_text([("queue_task", {"name": "How are you", "action": action})], say="queued")
    assert run(running, "ask", plan).stdout.strip() == "queued"
    (task,) = json.loads(run(running, "tasks", "--json").stdout)["tasks"]
    assert (task["kind"], task["name"]) == ("tool_call", "How are you")
    shown = run(running, "tasks").stdout
    assert task["taskId"] in shown
    assert "How are you" in shown
