"""Kill -9 at every moment of summing up and archiving: real processes, nothing lost, nothing doubled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from annabelle.core.home import Home
from annabelle.thinker.failpoints import ARCHIVED, COMPACTED, OLDER_KEPT, STARTED_AFRESH, SUMMED_UP
from support.postgres import connect, session_records
from support.scripted_model import Reply, Rule, ScriptedServer
from thinker.fake_hub import FakeHub
from thinker.thinkers import Thinker, brief, wait_for

Start = Callable[..., Thinker]
THREAD = "thr_one"


class Kept:
    """What is on disk of the thread, on either engine."""

    def __init__(self, home: Home, connection: psycopg.Connection | None) -> None:
        self._folder, self._connection = home.agent("tess") / "sessions", connection

    def session(self) -> list[dict[str, Any]]:
        if self._connection is not None:
            return session_records(self._connection, THREAD)
        return self._lines(self._folder / f"{THREAD}.jsonl")

    def older(self) -> list[dict[str, Any]]:
        if self._connection is not None:
            return session_records(self._connection, f"{THREAD}:older")
        return self._lines(self._folder / "older" / f"{THREAD}.jsonl")

    def archives(self) -> list[dict[str, Any]]:
        if self._connection is None:
            return self._lines(self._folder / "archive" / f"{THREAD}.jsonl")
        found = self._connection.execute("SELECT record::jsonb FROM archives ORDER BY ended_at")
        return [row[0] for row in found]

    def said(self) -> list[str]:
        """Every turn there is, wherever it stands, without those that stand in two places on the way."""
        whole = [turn for archive in self.archives() for turn in archive["turns"]]
        turns = [line for line in (*whole, *self.older(), *self.session()) if line["type"] == "turn"]
        return list(dict.fromkeys(turn["user"] for turn in turns))

    @staticmethod
    def _lines(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(params=["sqlite", "postgresql"])
def kept(request: pytest.FixtureRequest, settings: dict[str, str], home: Home) -> Iterator[Kept]:
    settings["THINKER_SESSION_COMPACTION_MIN_TURNS"] = "4"
    settings["THINKER_SESSION_COMPACTION_KEEP_RECENT"] = "2"
    settings["THINKER_SESSION_COMPACTION_THRESHOLD_CHARS"] = "1000"
    settings["THINKER_SESSION_COMPACTION_COOLDOWN_SECONDS"] = "0"
    if request.param == "sqlite":
        yield Kept(home, None)
        return
    settings["DATABASE_URL"] = str(request.getfixturevalue("postgres_tables_url"))
    with connect(settings["DATABASE_URL"]) as connection:
        yield Kept(home, connection)


def ask(thinker: Thinker, number: int) -> None:
    state = thinker.ask(brief(f"question {number} {'long ' * 80}".strip(), message_id=f"msg_{number}"))
    assert state.state == "done"


def expected(count: int) -> list[str]:
    return [f"question {number} {'long ' * 80}".strip() for number in range(count)]


def kinds(lines: list[dict[str, Any]]) -> list[str]:
    return sorted(line["type"] for line in lines)


@pytest.mark.req("SES-02", "DUR-02")
@pytest.mark.incident("I-21")
@pytest.mark.parametrize("failpoint", [SUMMED_UP, OLDER_KEPT, COMPACTED])
def test_a_process_killed_while_it_sums_up_loses_and_doubles_nothing(
    start: Start, hub: FakeHub, model: ScriptedServer, failpoints: Path, kept: Kept, failpoint: str
) -> None:
    model.rules(Rule(system="You sum up", reply=Reply(text="Summed up.")))
    first = start()
    for number in range(3):
        ask(first, number)
    (failpoints / failpoint).touch()
    ask(first, 3)
    first.wait_until_gone()
    assert kept.said() == expected(4)
    second = start()
    wait_for(lambda: "compaction" in kinds(kept.session()))
    assert kinds(kept.session()) == ["compaction", "header", "turn", "turn"]
    assert [line["user"] for line in kept.older()] == expected(2)
    ask(second, 4)
    assert kept.said() == expected(5)
    summaries = [one for one in model.requests if any("You sum up" in turn.text for turn in one.conversation.turns)]
    assert len(summaries) == 1, "what the model said before the kill is on record"
    assert "Summed up." in json.dumps(model.requests[-1].body)


@pytest.mark.req("SES-03")
@pytest.mark.incident("I-21")
@pytest.mark.parametrize("failpoint", [ARCHIVED, STARTED_AFRESH])
def test_a_process_killed_while_it_archives_loses_and_doubles_nothing(
    start: Start, model: ScriptedServer, failpoints: Path, settings: dict[str, str], kept: Kept, failpoint: str
) -> None:
    model.rules(Rule(system="You sum up", reply=Reply(text="Summed up.")))
    first = start()
    for number in range(4):
        ask(first, number)
    wait_for(lambda: "compaction" in kinds(kept.session()))
    first.kill()
    first.wait_until_gone()
    settings["AGENT_SESSION_TIMEOUT"] = "0.00001"
    (failpoints / failpoint).touch()
    start().wait_until_gone()
    assert kept.said() == expected(4)
    third = start()
    wait_for(lambda: kept.archives() and kinds(kept.session()) == ["header"] and not kept.older())
    settings["AGENT_SESSION_TIMEOUT"] = "30"
    third.kill()
    third.wait_until_gone()
    ask(start(), 4)
    assert kept.said() == expected(5)
    (archive,) = kept.archives()
    assert [turn["user"] for turn in archive["turns"]] == expected(4)
    assert (archive["reason"], archive["message_count"]) == ("session_timeout", 8)
    assert kinds(kept.session()) == ["header", "turn"]
