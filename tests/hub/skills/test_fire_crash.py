"""A real hub that is killed while a reminder is due: it is told once, by the next one (SKL-08)."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from annabelle.core.home import Home
from annabelle.hub.failpoints import SKILL_FAILPOINTS
from hub.hubs import HubProcess, wait_for
from support.scripted_model import ScriptedServer
from support.timing import seconds


@pytest.fixture
def armed(tmp_path: Path) -> Path:
    folder = tmp_path / "failpoints"
    folder.mkdir()
    return folder


@pytest.fixture
def hub(home: Home, model: ScriptedServer, armed: Path) -> Iterator[HubProcess]:
    made = HubProcess(home, model.openai_url, ANNABELLE_FAILPOINTS=str(armed)).start()
    yield made
    made.end()


def told(hub: HubProcess, thread_id: str, text: str) -> int:
    listed = hub.http.get(f"/threads/{thread_id}/messages").json()["messages"]
    return [line["text"] for line in listed].count(text)


def states(hub: HubProcess, name: str) -> list[str]:
    return [one["state"] for one in hub.http.get("/fires").json()["fires"] if one["name"] == name]


@pytest.mark.req("SKL-08", "DUR-01", "TRU-02")
@pytest.mark.incident("I-23")
@pytest.mark.timeout(600)
def test_a_hub_killed_at_any_named_moment_tells_a_reminder_once(hub: HubProcess, armed: Path) -> None:
    for point in SKILL_FAILPOINTS:
        # It must be made and told to the person before it is due, and kills the hub.
        when = f"in {math.ceil(seconds(3))} seconds"
        call = {"name": "memory_store_skill", "arguments": {"message": point, "when": when}}
        (armed / point).touch()
        made = hub.say(json.dumps({"calls": [call], "say": "I will."}))
        assert made["state"] == "done", made
        assert hub.wait(60) == -signal.SIGKILL, f"{point} was not reached"
        hub.start()
        thread_id = str(made["threadId"])
        wait_for(lambda: states(hub, point) == ["finished"], f"the end of {point}")  # noqa: B023  of this round
        assert told(hub, thread_id, f"⏰ {point}") == 1
    hub.kill()
    hub.start()
    for point in SKILL_FAILPOINTS:
        assert told(hub, thread_id, f"⏰ {point}") == 1
    skills = [one for one in hub.http.get("/skills").json()["skills"] if one["name"] in SKILL_FAILPOINTS]
    assert [one["enabled"] for one in skills] == [False] * len(SKILL_FAILPOINTS)
