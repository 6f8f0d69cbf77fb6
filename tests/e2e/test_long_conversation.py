"""Three hundred turns of one conversation, with kills in between: nothing is forgotten, doubled or paid twice."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from annabelle.core.home import Home
from e2e.days import MakeHub, plan, reply
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Recorded, Reply, Rule, ScriptedServer
from support.timing import seconds

TURNS = 300
TOOL = "memory_list_contacts"
SUMMED_UP = "The user is counting; order 4711 is open."
ABOUT = "They counted up to a hundred and fifty. Order 4711 stayed open."
TALK = "and so on, and so forth; " * 20


class Books:
    """What is on disk of the one conversation there is."""

    def __init__(self, home: Home) -> None:
        self._home, self._sessions = home, home.agent("annabelle") / "sessions"

    def lines(self, *folders: str) -> list[dict[str, Any]]:
        paths = sorted(self._sessions.joinpath(*folders).glob("*.jsonl"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def turns(self) -> list[str]:
        """The numbers of all turns, from the oldest archive to the latest line."""
        archived = [turn for archive in self.lines("archive") for turn in archive["turns"]]
        records = [*archived, *self.lines("older"), *self.lines()]
        return [number(record["user"]) for record in records if record["type"] == "turn"]

    def ledger(self, question: str) -> tuple[int, ...]:
        with sqlite3.connect(f"file:{self._home.database_file}?mode=ro", uri=True) as connection:
            return connection.execute(f"SELECT {question} FROM model_calls").fetchone()

    def settled(self) -> bool:
        """No model call is on its way, also none that sums up behind an answer."""
        return self.ledger("count(*) FILTER (WHERE state = 'reserved')") == (0,)

    def an_hour_passes(self) -> None:
        for path in (*self._sessions.glob("*.jsonl"), *self._sessions.glob("older/*.jsonl")):
            path.write_text("".join(json.dumps(_earlier(json.loads(line))) + "\n" for line in _lines(path)))


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _earlier(record: dict[str, Any]) -> dict[str, Any]:
    if "at" in record:
        record["at"] = (datetime.fromisoformat(record["at"]) - timedelta(hours=1)).isoformat()
    return record


def number(text: str) -> str:
    return str(json.loads(text)["say"]).split()[1]


def kill_thinker(hub: HubProcess) -> None:
    thinkers = hub.thinkers()
    assert thinkers
    for process in thinkers:
        process.kill()
    psutil.wait_procs(thinkers, timeout=seconds(30))


def asked_for_a_summary(request: Recorded) -> bool:
    return any("You sum up" in one.text or "You note what" in one.text for one in request.conversation.turns)


@pytest.mark.req("SES-02", "SES-03", "SES-04", "SEL-05")
@pytest.mark.incident("I-21")
@pytest.mark.timeout(240)
def test_three_hundred_turns_with_kills_in_between(make_hub: MakeHub, home: Home, rules: ScriptedServer) -> None:
    rules.rules(
        Rule(system="You sum up", reply=Reply(text=SUMMED_UP)), Rule(system="You note what", reply=Reply(text=ABOUT))
    )
    generous = {"agentId": "annabelle", "costControls": {"enabled": False}}
    home.agents_file.write_text(json.dumps({"agents": [generous]}))
    hub = make_hub(FACT_EXTRACTION_ENABLED="false", THINKER_SESSION_COMPACTION_COOLDOWN_SECONDS="0").start()
    books = Books(home)

    def say(count: int) -> Recorded:
        calls: list[tuple[str, dict[str, object]]] = [(TOOL, {})] if count % 10 == 9 else []
        assert reply(hub.say(plan(f"Number {count} {TALK}", *calls))).startswith(f"Number {count} ")
        return next(request for request in reversed(rules.requests) if not asked_for_a_summary(request))

    for count in range(TURNS):
        request = say(count)
        if count % 10 in (0, 1, 2) and count > 10 and count // 10 != 15:
            assert TOOL in request.conversation.tools, "a tool of the last three turns is at hand"
        if count in (69, 219):
            kill_thinker(hub)
        if count in (109, 149, 259):
            wait_for(books.settled, "an end to every model call")
            hub.kill()
            if count == 149:
                books.an_hour_passes()
            hub.start()

    wait_for(books.settled, "an end to every model call")
    assert books.turns() == [str(count) for count in range(TURNS)], "each turn once, and in order"
    (archive,) = books.lines("archive")
    assert (archive["reason"], archive["summary"], archive["message_count"]) == ("session_timeout", ABOUT, 300)
    kinds = [line["type"] for line in books.lines()]
    assert kinds[:2] == ["header", "compaction"]
    assert set(kinds[2:]) == {"turn"}
    assert len(kinds) < 40, "what was summed up does not stand in the session"

    last = json.dumps(say(TURNS).body)
    assert SUMMED_UP in last
    assert ABOUT in last
    assert len(last) < 200_000
    compactions = [request for request in rules.requests if asked_for_a_summary(request)]
    assert len(compactions) > 5

    wait_for(books.settled, "an end to every model call")
    counted = (len(rules.requests), sum(request.conversation.input_tokens for request in rules.requests))
    assert books.ledger("count(*), sum(input_tokens)") == counted, "what is booked is what the provider counted"
    assert books.ledger("count(*) FILTER (WHERE purpose = 'summary')") == (len(compactions),)
    assert hub.stop() == 0
