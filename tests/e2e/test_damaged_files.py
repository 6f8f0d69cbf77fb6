"""Damaged files: each is named in one sentence or repaired, what is readable is used, and nothing is thrown away."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from annabelle.core.home import Home
from e2e.days import MakeHub, one_sentence, plan, refused, reply
from hub.hubs import wait_for

GARBAGE = b"\xff\xfe this is nothing at all \x00" * 200


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [("data/flows.db", 3, "flows.db is damaged"), ("config/settings.env", 2, "settings.env can not be read")],
)
def test_a_start_names_the_file_it_can_not_use_and_leaves_it_alone(
    make_hub: MakeHub, home: Home, name: str, code: int, says: str
) -> None:
    (home.root / name).write_bytes(GARBAGE)
    ended, words = refused(make_hub())
    assert (ended, one_sentence(words)) == (code, True), words
    assert says in words
    assert (home.root / name).read_bytes() == GARBAGE


@pytest.mark.req("AGT-01", "EXT-03", "API-01")
@pytest.mark.incident("I-18")
def test_damage_that_can_be_worked_around_is_told_and_does_not_stop_the_start(make_hub: MakeHub, home: Home) -> None:
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}, {"agentId": "second"}]}))
    hub = make_hub().start()
    old = hub.token
    assert hub.stop() == 0
    for file in (home.token_file, home.agents_file, home.config / "external-mcps.json", home.known_servers_file):
        file.write_bytes(GARBAGE)
    home.traces_file.write_bytes(GARBAGE)
    hub.start()
    assert httpx.get(f"{hub.url}/status", headers={"X-Annabelle-Token": old}).status_code == 401
    assert hub.token != old
    assert [agent["agentId"] for agent in hub.http.get("/agents").json()["agents"]] == ["annabelle", "second"]
    told = {notice["topic"]: notice["text"] for notice in hub.http.get("/status").json()["notices"]}
    assert "agents.json" in told["agents_config"]
    assert "external-mcps.json" in told["external_config"]
    assert home.agents_file.read_bytes() == GARBAGE
    assert reply(hub.say(plan("all the same"))) == "all the same"


@pytest.mark.req("SES-01", "THK-04")
@pytest.mark.incident("I-21")
def test_a_damaged_session_and_a_damaged_record_of_turns(make_hub: MakeHub, home: Home) -> None:
    hub = make_hub().start()
    first = hub.say(plan("first"))
    hub.say(plan("second"))
    assert hub.stop() == 0
    session = home.agent("annabelle") / "sessions" / f"{first['threadId']}.jsonl"
    lines = session.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    session.write_bytes(lines[0] + GARBAGE.replace(b"\n", b"") + b"\n" + lines[2] + lines[1][:40])
    before = session.read_bytes()

    hub.start()
    assert reply(hub.say(plan("third"))) == "third"
    turns = [json.loads(line) for line in session.read_bytes().splitlines() if line.startswith(b'{"')]
    assert [turn.get("assistant") for turn in turns if turn["type"] == "turn"] == ["second", "third"]
    aside = list(session.parent.glob(f"{session.name}.damaged-*"))
    assert [file.read_bytes() for file in aside] == [before]

    assert hub.stop() == 0
    record = home.agent("annabelle") / "turns.db"
    for file in record.parent.glob("turns.db-*"):
        file.unlink()
    record.write_bytes(GARBAGE)
    hub.start()
    failed = hub.say(plan("never"))
    assert failed["state"] == "failed"
    assert reply(failed).startswith(f"The database {record} is damaged.")
    assert record.read_bytes() == GARBAGE
    record.rename(record.with_name("turns.damaged"))
    wait_for(lambda: reply(hub.say(plan("fourth"))) == "fourth", "the agent to begin anew")


@pytest.mark.incident("I-22")
def test_a_database_that_is_damaged_while_it_is_used_is_an_answer_and_not_a_crash(
    make_hub: MakeHub, home: Home
) -> None:
    hub = make_hub().start()
    thread = hub.say(plan("first"))["threadId"]
    assert hub.stop() == 0
    _scratch(home.database_file)
    ended, words = _start_or_ask(make_hub, str(thread))
    assert ended in (3, 507), words
    assert "damaged" in words


def _scratch(file: Path) -> None:
    """Overwrite everything but the first page, so that it opens and can not be read."""
    whole = bytearray(file.read_bytes())
    whole[4096:] = GARBAGE * (len(whole[4096:]) // len(GARBAGE)) + GARBAGE[: len(whole[4096:]) % len(GARBAGE)]
    file.write_bytes(whole)


def _start_or_ask(make_hub: MakeHub, thread_id: str) -> tuple[int, str]:
    hub = make_hub()
    try:
        hub.start()
    except AssertionError as ended:
        return 3, str(ended)
    answer = hub.http.get(f"/threads/{thread_id}/messages")
    return answer.status_code, answer.text
