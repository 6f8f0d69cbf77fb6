"""A full disk: what can not be kept is refused with one sentence, and what was taken in is waited for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annabelle.core.home import Home
from e2e.days import MakeHub, one_sentence, plan, refused, reply
from e2e.disks import Disk
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Reply, Rule, ScriptedServer
from support.timing import seconds


def session_of(hub: HubProcess, thread_id: object) -> list[dict[str, object]]:
    """Every line of a session; a line that is not whole is an error."""
    file = hub.home.agent("annabelle") / "sessions" / f"{thread_id}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.req("HUB-07")
def test_a_start_on_a_full_disk_is_one_sentence_and_leaves_nothing_half_made(make_hub: MakeHub, disk: Disk) -> None:
    home = Home(disk.folder / "home")
    hub = make_hub(home)
    disk.fill()
    code, words = refused(hub)
    disk.free()
    assert code in (2, 3)
    assert one_sentence(words), words
    assert "Free" in words
    assert reply(hub.start().say(plan("here"))) == "here"
    assert "Annabelle" in (home.agent("annabelle") / "instructions.md").read_text()
    hub.stop()
    disk.fill()
    code, words = refused(hub)
    disk.free()
    assert (code, one_sentence(words)) == (3, True), words


@pytest.mark.req("DUR-01")
def test_on_a_full_disk_a_message_is_refused_and_a_turn_waits(
    make_hub: MakeHub, disk: Disk, rules: ScriptedServer
) -> None:
    hub = make_hub(Home(disk.folder / "home").prepare()).start()
    hub.say(plan("first"))
    rules.clear()
    rules.rules(
        Rule(match="slowly", results=0, reply=Reply(tool_calls=[{"name": "filer_list_grants"}], delay=1)),  # type: ignore[list-item]
        Rule(match="slowly", results=1, reply=Reply(text="one two three four", chunks=4, chunk_delay=0.1)),
    )
    link = {"code": hub.http.post("/sessions/links").json()["path"].partition("=")[2]}
    begun = hub.http.post("/message", json={"text": "slowly"}).json()
    wait_for(lambda: rules.requests, "the model to be asked")
    disk.fill(hub.pid)
    late = hub.http.post("/message", json={"text": "too late"})
    assert late.status_code == 507
    assert late.json()["error"]["code"] == "storage_trouble"
    assert "disk" in late.json()["error"]["message"]
    assert hub.http.post("/files", params={"name": "late.txt"}, content=b"late").status_code == 507
    assert hub.http.post("/sessions", json=link).status_code == 507
    wait_for(lambda: "could not be written" in _log(hub) or len(rules.requests) == 1, "the disk to be missed")
    assert hub.http.get(f"/messages/{begun['messageId']}", params={"wait": 3}).json()["state"] == "running"
    disk.free(hub.pid)
    assert [hub.http.post("/sessions", json=link).status_code for _ in range(2)] == [200, 401]
    found = hub.http.get(f"/messages/{begun['messageId']}", params={"wait": seconds(60)}).json()
    assert (found["state"], reply(found)) == ("done", "one two three four")
    turns = [line for line in session_of(hub, begun["threadId"]) if line["type"] == "turn"]
    assert [turn["user"] for turn in turns] == [plan("first"), "slowly"]
    listed = hub.http.get(f"/threads/{begun['threadId']}/messages").json()["messages"]
    assert [line["source"] for line in listed if line["type"] == "text"] == ["user", "agent"] * 2
    assert reply(hub.say(plan("and on"))) == "and on"


def _log(hub: HubProcess) -> str:
    file = hub.home.logs / "hub.log"
    return file.read_text() if file.exists() else ""


@pytest.mark.req("SES-01")
@pytest.mark.incident("I-21")
def test_a_session_that_can_not_be_written_costs_its_memory_and_not_the_answer(
    make_hub: MakeHub, home: Home, tmp_path: Path
) -> None:
    hub = make_hub().start()
    first = hub.say(plan("first"))
    file = home.agent("annabelle") / "sessions" / f"{first['threadId']}.jsonl"
    kept = tmp_path / "kept.jsonl"
    file.rename(kept)
    file.symlink_to("/dev/full")  # from here on there is no space left for this one file
    told = reply(hub.say(plan("second")))
    assert told.startswith("second")
    assert "could not be remembered" in told
    file.unlink()
    kept.rename(file)
    assert reply(hub.say(plan("third"))) == "third"
    turns = [line for line in session_of(hub, first["threadId"]) if line["type"] == "turn"]
    assert [turn["assistant"] for turn in turns] == ["first", "third"]
