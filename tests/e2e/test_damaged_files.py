"""Damaged files: each is named in one sentence or repaired, what is readable is used, and nothing is thrown away."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2 as httpx
import pytest

from annabelle.core.home import Home
from e2e.days import MakeHub, one_sentence, plan, refused, reply

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


@pytest.mark.req("AGT-01", "EXT-03", "API-01", "SES-01")
@pytest.mark.incident("I-18", "I-21")
def test_damage_that_can_be_worked_around_is_told_and_does_not_stop_the_start(make_hub: MakeHub, home: Home) -> None:
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}, {"agentId": "second"}]}))
    hub = make_hub().start()
    old, thread = hub.token, hub.say(plan("first"))["threadId"]
    hub.say(plan("second"))
    assert hub.stop() == 0
    session = home.agent("annabelle") / "sessions" / f"{thread}.jsonl"
    before = _damage_first_turn(session)
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
    assert reply(hub.say(plan("third"))) == "third"
    lines = [json.loads(line) for line in session.read_bytes().splitlines() if line.startswith(b'{"')]
    assert [line["assistant"] for line in lines if line["type"] == "turn"] == ["second", "third"]
    aside = list(session.parent.glob(f"{session.name}.damaged-*"))
    assert [file.read_bytes() for file in aside] == [before]


def _damage_first_turn(session: Path) -> bytes:
    """Overwrite the first of two turns, and tear a line at the end."""
    lines = session.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    session.write_bytes(lines[0] + GARBAGE + b"\n" + lines[2] + lines[1][:40])
    return session.read_bytes()


@pytest.mark.req("THK-04")
def test_a_damaged_record_of_turns_is_the_answer_until_it_is_moved_away(make_hub: MakeHub, home: Home) -> None:
    record = home.agent("annabelle") / "turns.db"
    record.parent.mkdir()
    record.write_bytes(GARBAGE)
    hub = make_hub().start()
    failed = hub.say(plan("never"))
    assert failed["state"] == "failed"
    assert reply(failed).startswith(f"The database {record} is damaged.")
    assert record.read_bytes() == GARBAGE
    record.rename(record.with_name("turns.damaged"))
    assert reply(hub.say(plan("anew"), chatId="another")) == "anew"


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
