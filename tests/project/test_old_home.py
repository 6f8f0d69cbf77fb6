"""A home that an earlier commit wrote goes on under the code of today: nothing in it is lost, and nothing done twice.

`scripts/make_old_home.py` wrote the homes with the code of their time: a hub talked, remembered, asked for a yes, and
was killed in the middle of two turns. A home is never written again; a new version may add one.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from annabelle.core.home import Home
from annabelle.core.messages import now
from hub.hubs import HubProcess, wait_for
from support.few_servers import only
from support.scripted_model import Recorded, ScriptedServer, plan_text
from support.timing import seconds
from support.toolbox import TESTS

HOMES = Path(__file__).with_name("homes")
NAMES = sorted(file.name.removesuffix(".tar.xz") for file in HOMES.glob("*.tar.xz"))
ANNABELLE = Path(sys.executable).parent / "annabelle"
WAIT = 180.0
SETTINGS = {
    "FACT_EXTRACTION_ENABLED": "false",
    "AGENT_SESSION_TIMEOUT": "100000000",
    "EXTERNAL_SERVERS_NEED_YES": "true",
    "OLD_HOME_PYTHON": sys.executable,
    "OLD_HOME_TESTS": str(TESTS),
}

Json = dict[str, Any]
pytestmark = pytest.mark.timeout(600)


@dataclass
class OldHome:
    """A hub of today on a home of then."""

    hub: HubProcess
    model: ScriptedServer
    facts: Json
    token: str

    def get(self, path: str, **query: object) -> Json:
        answer = self.hub.http.get(path, params=query, timeout=seconds(WAIT + 10))  # type: ignore[arg-type]
        return answer.raise_for_status().json()

    def tool(self, name: str, **arguments: object) -> Json:
        body = {"name": name, "arguments": arguments}
        answer: Json = self.hub.http.post("/tools/call", json=body, timeout=seconds(WAIT)).raise_for_status().json()
        assert not answer["is_error"], answer
        return answer["structured"]

    def say(self, chat: str, text: str) -> Json:
        return self.hub.say(text, wait=WAIT, chatId=chat, channel="terminal")

    def outcome(self, message_id: str) -> Json:
        """How the turn of a message ended."""

        def ended() -> Json | None:
            found = self.get(f"/messages/{message_id}", wait=20)
            return found if found["state"] in ("done", "failed") else None

        return wait_for(ended, f"the end of {message_id}", WAIT)

    def run(self, *arguments: str) -> str:
        """What a command prints."""
        made = subprocess.run(
            [ANNABELLE, *arguments], env=self.hub.environment, capture_output=True, text=True, timeout=seconds(WAIT)
        )
        assert made.returncode == 0, made.stderr
        return made.stdout

    def asked(self, words: str) -> list[Recorded]:
        """What the model was asked, today, where the person's last words were these."""
        return [request for request in self.model.requests if words in request.conversation.user_text]


@pytest.fixture(scope="module", params=NAMES)
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldHome]:
    folder = tmp_path_factory.mktemp("old")
    shutil.unpack_archive(HOMES / f"{request.param}.tar.xz", folder)
    home = Home(folder / "home")
    _make_recent(home)
    token = home.token_file.read_text().strip()
    facts = json.loads((HOMES / f"{request.param}.json").read_text())
    with ScriptedServer() as model:
        hub = HubProcess(home, model.openai_url, **only("filer", "memory", "notes"), **SETTINGS)
        try:
            yield OldHome(hub.start(), model, facts, token)
        finally:
            hub.end()


def _make_recent(home: Home) -> None:
    """A question waits for days only, and a subagent's task has minutes; the home may be years old."""
    with closing(sqlite3.connect(home.database_file)) as connection, connection:
        connection.execute("UPDATE approvals SET expires_at = ?", (_moment(now() + timedelta(days=1)),))
        connection.execute("UPDATE tasks SET created_at = ? WHERE state != 'done'", (_moment(now()),))


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")


def test_the_hub_starts_on_it_and_is_well(old: OldHome):
    status = old.get("/status")
    assert status["status"] == "ready"
    assert {server["name"] for server in status["servers"] if server["available"]} >= {"filer", "memory", "notes"}
    assert {agent["agentId"] for agent in status["agents"]} >= {"annabelle", "scout"}
    assert not any("damaged" in str(notice) for notice in status["notices"])
    assert old.hub.token == old.token, "whoever had the token gets in"


def test_a_question_is_answered(old: OldHome):
    assert old.run("ask", "--chat", "new", plan_text(say="I am here.")).strip() == "I am here."


def test_a_turn_that_was_killed_is_finished_and_what_it_had_done_is_not_done_again(old: OldHome):
    outcome = old.outcome(old.facts["killed"])
    assert (outcome["state"], outcome["reply"]["text"]) == ("done", "The killed turn is finished.")
    assert (old.hub.home.workspace / "killed.txt").read_text() == "written once"
    asked = old.asked("The killed turn")
    assert [len(request.conversation.results) for request in asked] == [1], "the finished steps came from the record"


def test_a_subagent_that_was_killed_is_finished_and_its_parent_gets_the_result(old: OldHome):
    outcome = old.outcome(old.facts["helped"])
    assert outcome["state"] == "done"
    assert "The helper is done." in outcome["reply"]["text"]
    assert {task["state"] for task in old.get("/tasks")["tasks"]} == {"done"}


def test_what_was_said_is_there_in_its_order(old: OldHome):
    said = old.get(f"/threads/{old.facts['main']}/messages")["messages"]
    texts = [message["text"].partition("\n")[0] for message in said if message["type"] == "text"]
    assert texts[:4] == [
        "I live in Lisbon.",
        "I will remember Lisbon.",
        "Keep a note about the roses.",
        "The note is written.",
    ]


def test_facts_conversations_people_and_notes_are_found(old: OldHome):
    found = old.tool("memory_retrieve_memories", query="Where does the user live?")
    assert "Lives in Lisbon since May" in json.dumps(found)
    assert "Prefers tea to coffee" in json.dumps(old.tool("memory_list_facts"))
    assert "roses" in json.dumps(old.tool("memory_search_conversations", query="garden roses"))
    assert "ada@example.com" in json.dumps(old.tool("memory_list_contacts"))
    assert "Short answers, please." in json.dumps(old.tool("memory_get_profile"))
    assert "Water them on Sundays." in old.tool("notes_get_note", note="Roses")["content"]
    assert "Bread" in json.dumps(old.tool("notes_list_todos", list="Shopping"))
    assert "Lives in Lisbon" in old.run("memory", "search", "Lisbon")


def test_the_session_goes_on_with_its_summary_and_its_last_words(old: OldHome):
    assert old.say("main", "Where were we?")["threadId"] == old.facts["main"]
    body = json.dumps(old.asked("Where were we?")[-1].body)
    assert "They planned the garden; the roses come first." in body
    assert "Always ask before deleting files." in body
    assert "Prune in March" in body, "what the model wrote on its desk"


def test_an_archived_conversation_is_known_and_can_be_searched(old: OldHome):
    search = plan_text([("search_agent_history", {"query": "harbour"})], "Found: {result}")
    answer = old.say("harbour", f"What did we say of the port?\n{search}")
    assert "They spoke about the harbour of Lisbon." in answer["reply"]["text"]
    assert "It is wide and blue." in answer["reply"]["text"]


def test_a_question_that_waited_can_be_answered_and_its_turn_goes_on(old: OldHome):
    (question,) = [one for one in old.get("/approvals")["approvals"] if one["id"] == old.facts["approval"]]
    assert (question["state"], question["tool"]) == ("pending", "filer_delete_file")
    prices = old.hub.home.workspace / "prices.txt"
    assert prices.exists()
    answered = old.hub.http.post(f"/approvals/{question['id']}", json={"verdict": "approve"}).raise_for_status().json()
    outcome = old.outcome(answered["messageId"])
    assert (outcome["state"], outcome["reply"]["text"]) == ("done", "The prices are deleted.")
    assert not prices.exists()
    assert old.get(f"/approvals/{question['id']}")["state"] == "used"


def test_rules_are_listed_and_held(old: OldHome):
    words = [rule["words"] for rule in old.get("/rules")["rules"]]
    assert any("mallory@example.com" in rule for rule in words)
    assert any("before deleting files" in rule for rule in words)
    assert "mallory@example.com" in old.run("rules", "list")
    delete = plan_text([("filer_delete_file", {"path": "Documents/harbour.txt"})])
    answer = old.say("held", f"Delete the file Documents/harbour.txt\n{delete}")
    assert "Your rule says: Always ask before deleting files." in answer["reply"]["text"]
    assert (old.hub.home.workspace / "Documents" / "harbour.txt").exists()


def test_a_server_that_was_accepted_runs_without_another_yes(old: OldHome):
    wait_for(lambda: old.get("/servers/unchanging")["held"] is None, "the server to be let in", WAIT)
    body = {"name": "unchanging_greet", "arguments": {"name": "Ada"}}
    assert "Hello, Ada." in old.hub.http.post("/tools/call", json=body, timeout=seconds(WAIT)).raise_for_status().text


def test_an_agent_that_was_stopped_stays_stopped(old: OldHome):
    refused = old.hub.http.post("/message", json={"text": "Go on.", "agentId": "scout"}, params={"wait": WAIT}).text
    assert "stopped" in refused
    assert "annabelle resume" in refused


def test_a_turn_of_then_can_still_be_explained(old: OldHome):
    first = old.get(f"/threads/{old.facts['main']}/messages")["messages"][0]
    assert "memory_store_fact" in old.run("trace", first["traceId"])


def test_what_was_spent_is_still_counted(old: OldHome):
    by_purpose = {total["key"]: total for total in old.get("/costs", by="purpose")["totals"]}
    assert by_purpose["chat"]["costUsd"] > 0.015
    assert by_purpose["summary"]["calls"] > 0
    with closing(sqlite3.connect(f"file:{old.hub.home.database_file}?mode=ro", uri=True)) as connection:
        (months,) = connection.execute("SELECT count(*) FROM spending WHERE length(period) = 7").fetchone()
    assert months >= 1


def test_another_person_gets_in_and_sees_what_is_theirs_alone(old: OldHome):
    head = {"X-Annabelle-Token": old.facts["ben"]}
    threads = old.hub.http.get("/threads", headers=head).raise_for_status().json()["threads"]
    said = [old.hub.http.get(f"/threads/{thread['id']}/messages", headers=head).json() for thread in threads]
    assert "Hello, Ben." in json.dumps(said)
    assert "Lisbon" not in json.dumps(said)


def test_the_audit_is_whole_and_goes_on(old: OldHome):
    verdict = json.loads(old.run("audit", "verify", "--json"))
    assert verdict["good"], verdict
    assert "memory_create_contact" in old.hub.home.audit_file.read_text()
