"""A real hub that is killed while a reminder is due: it is told once, by the next one (SKL-08)."""

from __future__ import annotations

import contextlib
import json
import math
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from annabelle.core.home import Home
from annabelle.hub.failpoints import SKILL_FAILPOINTS
from hub.hubs import HubProcess, wait_for
from support.few_servers import only
from support.scripted_model import ScriptedServer
from support.timing import seconds


@pytest.fixture
def armed(tmp_path: Path) -> Path:
    folder = tmp_path / "failpoints"
    folder.mkdir()
    return folder


@pytest.fixture
def hub(home: Home, model: ScriptedServer, armed: Path) -> Iterator[HubProcess]:
    made = HubProcess(home, model.openai_url, ANNABELLE_FAILPOINTS=str(armed), **only()).start()
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


RUN_FAILPOINTS = (
    "hub.after_fire_begun",
    "hub.after_fire_work",
    "hub.before_turn",
    "hub.after_turn",
    "hub.before_deliver",
    "hub.after_deliver",
)


@pytest.mark.req("SKL-03", "SKL-08", "DUR-01")
@pytest.mark.incident("I-23")
@pytest.mark.timeout(600)
def test_a_hub_killed_while_a_model_carries_a_skill_out_tells_its_result_once(hub: HubProcess, armed: Path) -> None:
    instructions = json.dumps({"say": "All is well."})
    given = {
        "name": "Rounds",
        "instructions": instructions,
        "required_tools": ["get_status"],
        "trigger_type": "manual",
        "notify_interval_minutes": 0,
    }
    made = hub.say(json.dumps({"calls": [{"name": "memory_store_skill", "arguments": given}], "say": "I will."}))
    for question in hub.http.get("/approvals").json()["approvals"]:
        hub.http.post(f"/approvals/{question['id']}", json={"verdict": "approve"}).raise_for_status()
    wait_for(lambda: hub.http.get("/skills/Rounds").is_success, "the skill")
    for count, point in enumerate(RUN_FAILPOINTS, 1):
        (armed / point).touch()
        with contextlib.suppress(httpx.HTTPError):
            hub.http.post("/skills/Rounds/run", json={})
        assert hub.wait(60) == -signal.SIGKILL, f"{point} was not reached"
        hub.start()
        wait_for(lambda: states(hub, "Rounds") == ["finished"] * count, f"the end after {point}")  # noqa: B023
        assert told(hub, str(made["threadId"]), "All is well.") == count, point
