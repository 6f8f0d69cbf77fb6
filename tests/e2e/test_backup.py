"""A backup that is made while Annabelle runs, restored where there was nothing: everything is as it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annabelle.core.home import Home
from cli.terminal import run
from e2e.days import MakeHub, plan, reply
from hub.hubs import HubProcess, wait_for
from support.canary import Canary
from support.postgres import Postgres, postgres, postgres_url  # noqa: F401  fixtures
from support.scripted_model import Reply, Rule, ScriptedServer
from support.timing import seconds

BOAT = "Ada's boat is called Quillfin Marrow"
KEY = Canary("kelmarsh-9917-Prouvet")
PASSPHRASE = "a horse, a battery, a staple"
SQL = "postgresql"


def annabelle(hub: HubProcess, *words: str | Path, **more: str) -> Any:
    """What a command tells a machine."""
    done = run(hub.environment | more, *map(str, words), "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(hub: HubProcess, *words: str | Path, **more: str) -> tuple[int, str]:
    """How a command ends that is refused, and its sentence."""
    done = run(hub.environment | more, *map(str, words), "--json")
    assert done.returncode != 0, done.stdout
    return done.returncode, json.loads(done.stderr)["error"]["message"]


def call(hub: HubProcess, tool: str, **arguments: object) -> Any:
    answer = hub.http.post("/tools/call", json={"name": tool, "arguments": arguments})
    assert answer.status_code == 200, answer.text
    return answer.json()


def live(hub: HubProcess) -> str:
    """Some days with Annabelle. Returns the thread."""
    hub.home.workspace.mkdir(exist_ok=True)
    (hub.home.workspace / "plan.txt").write_text("paint the boat")
    (hub.home.agent("annabelle") / "instructions.md").write_text("You are Annabelle, and you like boats.")
    fact = {"fact": BOAT, "category": "background"}
    hub.say(plan("Noted.", ("memory_store_fact", fact)), chatId="kitchen")
    reminder = {"message": "stretch", "when": "in 300 days"}
    hub.say(plan("I will.", ("memory_store_skill", reminder)), chatId="kitchen")
    return str(hub.say(plan("Hello."), chatId="kitchen")["threadId"])


def remembered(hub: HubProcess, thread_id: str) -> dict[str, Any]:
    """What a person would look at."""
    messages = hub.http.get(f"/threads/{thread_id}/messages").json()["messages"]
    found = call(hub, "memory_retrieve_memories", query="what is the boat called?")
    assert BOAT in str(found), found
    return {
        "messages": [(line["source"], line["text"], line["createdAt"]) for line in messages],
        "found": found["structured"],
        "skills": [(one["name"], one["when"], one["nextDue"]) for one in hub.http.get("/skills").json()["skills"]],
        "audit": annabelle(hub, "audit", "verify"),
        "file": (hub.home.workspace / "plan.txt").read_text(),
        "persona": (hub.home.agent("annabelle") / "instructions.md").read_text(),
    }


@pytest.fixture(params=["sqlite", SQL])
def new_database(request: pytest.FixtureRequest) -> Callable[[], dict[str, str]]:
    """The setting for a database of its own on each engine."""
    if request.param == "sqlite":
        return dict
    server: Postgres = request.getfixturevalue("postgres")
    return lambda: {"DATABASE_URL": server.create()}


@pytest.mark.timeout(300)
@pytest.mark.req("BEY-06", "MEM-09")
def test_a_restored_home_answers_as_before_in_its_place_and_elsewhere(
    make_hub: MakeHub, rules: ScriptedServer, tmp_path: Path, new_database: Callable[[], dict[str, str]]
) -> None:
    """In its place it waits for no running Annabelle and keeps what it replaces."""
    old = make_hub(**new_database()).start()
    old.home.settings_file.write_text(f"COMPATIBLE_API_KEY={KEY.text}\nUSER_NAME=Ada\n")
    thread_id = live(old)
    file, secret = tmp_path / "all.backup", tmp_path / "passphrase"
    secret.write_text(f"{PASSPHRASE}\n")
    made = annabelle(old, "backup", file, "--passphrase-file", secret)
    assert file.stat().st_mode & 0o777 == 0o600
    assert made["secrets"] >= 2
    assert KEY.text.encode() not in file.read_bytes()
    plain = tmp_path / "plain.backup"
    annabelle(old, "backup", plain)
    before, token = remembered(old, thread_id), old.token

    old.say(plan("Said later."), chatId="kitchen")
    restore_in_its_place(old, plain)
    old.start()
    after = remembered(old, thread_id)
    assert after.pop("audit")["good"], "without a passphrase a new one begins"
    assert after == {name: value for name, value in before.items() if name != "audit"}
    assert reply(old.say(plan("And on."), chatId="kitchen")) == "And on."

    old.kill()
    shutil.rmtree(old.home.root)
    new = make_hub(Home(tmp_path / "elsewhere" / "home"), **new_database())
    done = annabelle(new, "restore", file, "--passphrase-file", secret)
    assert (done["replaced"], done["left_out"]) == ([], [])
    new.start()
    after = remembered(new, thread_id)
    assert (after.pop("audit")["good"], before.pop("audit")["good"]) == (True, True)
    assert after == before
    assert new.token == token
    assert KEY.text in new.home.settings_file.read_text()
    assert reply(new.say(plan("Good to be back."), chatId="kitchen")) == "Good to be back."
    sent = [one for one in rules.requests if "Good to be back." in one.conversation.user_text][-1]
    said = "\n".join(turn.text for turn in sent.conversation.turns)
    assert "Noted." in said, "the conversation goes on"
    assert "you like boats" in said


def restore_in_its_place(hub: HubProcess, file: Path) -> None:
    (hub.home.workspace / "later.txt").write_text("a later file")
    (hub.home.models / "mind.gguf").parent.mkdir(exist_ok=True)
    (hub.home.models / "mind.gguf").write_text("weights")
    code, sentence = refusal(hub, "restore", file, "--force")
    assert (code, "runs" in sentence) == (4, True)
    hub.stop()
    code, sentence = refusal(hub, "restore", file)
    assert (code, "already" in sentence) == (2, True)
    done = annabelle(hub, "restore", file, "--force")
    kept = Path(done["replaced"][0])
    assert (kept / "workspace" / "later.txt").read_text() == "a later file"
    assert (hub.home.models / "mind.gguf").read_text() == "weights"
    assert not (hub.home.workspace / "later.txt").exists()
    assert len(done["replaced"]) == (3 if "DATABASE_URL" in hub.environment else 1)


@pytest.mark.timeout(300)
@pytest.mark.req("BEY-06", "DUR-01")
def test_what_was_being_answered_during_the_backup_is_answered_once_after_the_restore(
    make_hub: MakeHub, rules: ScriptedServer, tmp_path: Path, new_database: Callable[[], dict[str, str]]
) -> None:
    rules.rules(
        Rule(match="take your time", times=1, reply=Reply(text="One two three four", chunks=4, hang_after=2)),
        Rule(match="take your time", reply=Reply(text="At last.")),
    )
    old = make_hub(**new_database()).start()
    asked = old.http.post("/message", json={"text": "take your time"}).json()
    waiting = old.http.post("/message", json={"text": plan("And the next.")}).json()
    wait_for(lambda: rules.requests, "the model to be asked")
    annabelle(old, "backup", tmp_path / "all.backup")
    old.kill()

    new = make_hub(Home(tmp_path / "elsewhere" / "home"), **new_database())
    annabelle(new, "restore", tmp_path / "all.backup")
    new.start()

    for message, answer in ((asked, "At last."), (waiting, "And the next.")):
        found = new.http.get(f"/messages/{message['messageId']}", params={"wait": seconds(60)}).json()
        assert (found["state"], reply(found)) == ("done", answer)
    listed = new.http.get(f"/threads/{asked['threadId']}/messages").json()["messages"]
    assert [line["source"] for line in listed] == ["user", "user", "agent", "agent"]


@pytest.mark.req("BEY-06")
def test_a_backup_of_sqlite_is_not_restored_to_postgresql(
    make_hub: MakeHub,
    tmp_path: Path,
    postgres_url: str,  # noqa: F811
) -> None:
    hub = make_hub().start()
    file = tmp_path / "all.backup"
    annabelle(hub, "backup", file)
    other = make_hub(Home(tmp_path / "other" / "home"), DATABASE_URL=postgres_url)
    code, sentence = refusal(other, "restore", file)
    assert (code, "SQLite" in sentence and "PostgreSQL" in sentence) == (2, True)
    assert not other.home.root.exists()
