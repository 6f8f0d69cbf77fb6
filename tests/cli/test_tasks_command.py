"""`annabelle tasks`: what agents handed on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import cast

import pytest

from annabelle.cli import tasks as command
from annabelle.cli.hub_client import CliHubClient, ServerEvent
from annabelle.core.messages import StoredEvent
from annabelle.core.tools import JsonObject
from cli.terminal import run
from support.scripted_model import plan_text
from support.timing import seconds


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


class WatchedTask:
    """The part of a hub that `watch` asks: a task whose thread has one event after the other, and which then ends."""

    def __init__(self, *events: StoredEvent) -> None:
        self.state, self.asked, self._events = "active", 0, events

    async def get(self, _path: str) -> JsonObject:
        self.asked += 1
        return {"state": self.state, "threadId": "thr_1"}

    async def events(self, _thread_id: str, _last_id: str) -> AsyncGenerator[ServerEvent]:
        for event in self._events:
            if event.type in ("done", "notice"):
                self.state = "completed"
            yield ServerEvent(event.model_dump_json())
        await asyncio.Event().wait()


def make_event(seq: int, kind: str, **data: object) -> StoredEvent:
    fields = {"message_id": "m", "thread_id": "thr_1", "seq": seq, "key": str(seq), "type": kind, "data": data}
    return StoredEvent.model_validate(fields)


@pytest.mark.req("AGE-03", "THR-04")
@pytest.mark.parametrize(
    "last", [make_event(500, "done", success=True), make_event(500, "notice", text="The task is cancelled.")]
)
async def test_a_task_is_watched_by_its_events_and_not_by_asking_again_and_again(
    monkeypatch: pytest.MonkeyPatch, last: StoredEvent
) -> None:
    monkeypatch.setattr(command, "_LOOK_SECONDS", 3600.0)
    task = WatchedTask(*(make_event(seq, "text", text="x", replace=False) for seq in range(1, 500)), last)
    async with asyncio.timeout(seconds(10)):
        found = await command._watch(cast("CliHubClient", task), "task_1", json=True)
    assert (found["state"], task.asked) == ("completed", 2)
