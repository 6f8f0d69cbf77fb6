"""What is forgotten stands nowhere any more: every byte of a real home is looked at, before and after (TRU-09)."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
import pytest

from annabelle.core.messages import now
from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK
from annabelle.hub.failpoints import FORGETTING_FAILPOINTS
from annabelle.store import backup
from e2e.days import MakeHub, plan, reply
from hub.hubs import HubProcess, wait_for
from support.canary import Canary
from support.postgres import early, postgres, postgres_url  # noqa: F401  fixtures
from support.scripted_model import Reply, Rule, ScriptedServer
from support.timing import seconds

PLAIN = Canary("Quorvalenting Tessaracts 9917", "quorval", "tessaract")
FOREIGN = Canary("Ünnabär Façadé 東京塔 8842", "unnabar", "ünnabär")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    early(items)


def call(hub: HubProcess, tool: str, **arguments: object) -> dict[str, object]:
    answer = hub.http.post("/tools/call", json={"name": tool, "arguments": arguments})
    assert answer.status_code == 200, answer.text
    return answer.json()


def forget(hub: HubProcess, canary: Canary, *, preview: bool) -> dict[str, object]:
    answer = hub.http.post(
        "/memory/forget", json={"text": canary.text.upper(), "preview": preview}, timeout=seconds(120)
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def counts(report: dict[str, object]) -> dict[str, int]:
    places = report["places"]
    assert isinstance(places, list)
    return {place["place"]: place["count"] for place in places}


def spread(hub: HubProcess, canary: Canary, other: str) -> None:
    """Say it, have it stored, corrected, exported, searched for and written into errors."""
    stored = hub.say(
        plan("Noted.", ("memory_store_fact", {"fact": f"Ada keeps {canary.text} at home", "category": "background"})),
        chatId=f"about {other}",
    )
    assert reply(stored) == "Noted."
    hub.say(f"What did I say of {canary.text}?")
    known = call(hub, "memory_list_facts")["structured"]
    assert isinstance(known, dict)
    fact_id = next(fact["id"] for fact in known["facts"] if canary.text in fact["fact"])
    call(hub, "memory_update_fact", fact_id=fact_id, fact=f"Ada keeps {canary.text} in a bank")
    call(hub, "memory_retrieve_memories", query=canary.text)
    call(hub, "memory_create_contact", name="Bob", email=f"bob{other}@example.org", notes=f"asked for {canary.text}")
    call(hub, "memory_update_profile", updates={f"told {canary.text}": "yes", "likes": ["tea", canary.text]})
    for kind in ("markdown", "json"):
        call(hub, "memory_export_memory", format=kind)
    call(hub, "filer_read_file", path=f"temp/{canary.text}.txt")
    hub.http.post("/tools/call", json={"name": canary.text, "arguments": {}})
    hub.home.history_file.write_text(f"hello\n{canary.text}\n")
    wait_for(lambda: "conversations" in counts(forget(hub, canary, preview=True)), "the turn in the memory")


def copy(hub: HubProcess) -> None:
    for file in (hub.home.database_file, hub.home.memory_file):
        backup.copy_file(file, hub.home.backups, "test", now())


@pytest.fixture
def hub(make_hub: MakeHub) -> HubProcess:
    """One that writes down all it can."""
    return make_hub(LOG_LEVEL="debug").start()


@pytest.mark.req("TRU-09")
def test_what_is_forgotten_stands_in_no_byte_of_the_home(hub: HubProcess):
    home = hub.home.root
    call(hub, "memory_store_fact", fact="Ada likes tea", category="preference")
    for canary, other in ((PLAIN, "one"), (FOREIGN, "two")):
        spread(hub, canary, other)
        copy(hub)
        before = canary.files(home)
        places = {name.removesuffix("-wal") for name in before}
        assert {"data/annabelle.db", "data/memory.db", "data/flows.db", "agents/annabelle/turns.db"} <= places
        assert "run/history" in before
        for folder in ("agents/annabelle/sessions/", "backups/", "logs/", "memory-export/"):
            assert any(name.startswith(folder) for name in before), (folder, before)

        seen = forget(hub, canary, preview=True)
        assert canary.files(home) >= before - {name for name in before if name.endswith("-wal")}, (
            "looking changes nothing"
        )
        done = forget(hub, canary, preview=False)

        assert {"facts", "conversations", "messages", "sessions", "turns", "backups"} <= counts(seen).keys()
        assert counts(done)["facts"] == counts(seen)["facts"] == 2
        assert canary.files(home) == set()
        assert forget(hub, canary, preview=True)["total"] == 0
    known = call(hub, "memory_list_facts")["structured"]
    assert isinstance(known, dict)
    assert [fact["fact"] for fact in known["facts"]] == ["Ada likes tea"]

    # The conversation goes on, with what is left of it.
    assert reply(hub.say(plan("Good."), chatId="about one")) == "Good."
    copy(hub)
    assert PLAIN.files(home) | FOREIGN.files(home) == set()
    assert hub.stop() == 0
    assert PLAIN.files(home) | FOREIGN.files(home) == set()
    hub.start()
    assert reply(hub.say(plan("Hello."), chatId="about two")) == "Hello."
    call(hub, "memory_retrieve_memories", query="what does Ada keep?")
    assert PLAIN.files(home) | FOREIGN.files(home) == set()
    audit = hub.home.forgotten_file.read_text().splitlines()
    assert len(audit) == 2


@pytest.mark.req("TRU-09")
def test_what_is_forgotten_on_postgresql_stands_in_no_table(make_hub: MakeHub, postgres_url: str):  # noqa: F811
    hub = make_hub(DATABASE_URL=postgres_url).start()
    spread(hub, FOREIGN, "one")
    before = FOREIGN.tables(postgres_url)
    assert {"public.messages", "public.sessions", "public.facts", "public.text_index"} <= before
    assert {"flows.operation_outputs", "turns_annabelle.operation_outputs"} <= before

    forget(hub, FOREIGN, preview=False)

    assert FOREIGN.tables(postgres_url) == set()
    assert FOREIGN.files(hub.home.root) == set()
    assert reply(hub.say(plan("Good."), chatId="about one")) == "Good."
    assert FOREIGN.tables(postgres_url) == set()


@pytest.mark.timeout(300)  # a start for every moment
@pytest.mark.req("TRU-09")
def test_a_hub_killed_at_every_moment_of_forgetting_finishes_in_the_end(make_hub: MakeHub, tmp_path: Path):
    armed = tmp_path / "failpoints"
    armed.mkdir()
    hub = make_hub(ANNABELLE_FAILPOINTS=str(armed)).start()
    hub.say(plan("Noted.", ("memory_store_fact", {"fact": f"Ada has {PLAIN.text}", "category": "background"})))
    hub.say(plan("And this stays.", ("memory_store_fact", {"fact": "Ada likes tea", "category": "preference"})))
    copy(hub)
    assert PLAIN.files(hub.home.root)
    for point in FORGETTING_FAILPOINTS:
        (armed / point).touch()
    with pytest.raises(httpx.TransportError):
        forget(hub, PLAIN, preview=False)
    assert hub.wait() == -signal.SIGKILL
    for point in FORGETTING_FAILPOINTS[1:]:
        # Each start goes on from what the last one left, and dies one moment later.
        process = hub.spawn()
        process.communicate(timeout=seconds(60))
        assert process.returncode == -signal.SIGKILL, point
        assert hub.home.forgetting_file.exists()
    assert [path.name for path in armed.iterdir() if ".hit-" not in path.name] == []

    hub.start()

    assert not hub.home.forgetting_file.exists()
    assert PLAIN.files(hub.home.root) == set()
    known = call(hub, "memory_list_facts")["structured"]
    assert isinstance(known, dict)
    assert [fact["fact"] for fact in known["facts"]] == ["Ada likes tea"]
    assert reply(hub.say(plan("Still here."))) == "Still here."


def test_a_turn_is_waited_for_and_what_comes_meanwhile_is_answered_afterwards(hub: HubProcess, rules: ScriptedServer):
    hub.say(plan("Noted.", ("memory_store_fact", {"fact": f"Ada has {PLAIN.text}", "category": "background"})))
    rules.rules(Rule(match="slowly", times=1, reply=Reply(text=f"You have {PLAIN.text}.", delay=1.5)))
    said = [hub.http.post("/message", json={"text": "tell me slowly"}).json()["messageId"]]
    wait_for(lambda: hub.http.get("/status").json()["turnsRunning"], "a turn")
    with ThreadPoolExecutor(1) as beside:
        forgetting = beside.submit(forget, hub, PLAIN, preview=False)
        said.append(hub.http.post("/message", json={"text": plan("Here."), "chatId": "other"}).json()["messageId"])
        assert forgetting.result(seconds(120))["total"]
    answers = [
        hub.http.get(f"/messages/{message_id}", params={"wait": seconds(60)}, timeout=seconds(70)).json()
        for message_id in said
    ]
    assert [answer["state"] for answer in answers] == ["done", "done"]
    assert [reply(answer) for answer in answers] == [FORGOTTEN_MASK, "Here."]
    assert PLAIN.files(hub.home.root) == set()


def test_words_the_house_itself_is_made_of_can_be_forgotten_and_it_still_stands(hub: HubProcess):
    hub.say(plan("Noted.", ("memory_store_fact", {"fact": "Ada says turn to me", "category": "pattern"})))
    for word in ("turn", "annabelle", "memory", "text"):
        answer = hub.http.post("/memory/forget", json={"text": word, "preview": False}, timeout=seconds(120))
        assert answer.status_code == 200, answer.text
    assert hub.stop() == 0
    hub.start()
    assert reply(hub.say(plan("Here.", ("memory_list_facts", {})))) == "Here."


def test_too_little_to_look_for_and_two_things_at_once_are_refused(hub: HubProcess):
    for body in ({"text": " a\n"}, {}, {"text": "abc", "factId": 1}, {"factId": 0}):
        assert hub.http.post("/memory/forget", json=body).status_code == 422
    missing = hub.http.post("/memory/forget", json={"factId": 4711})
    assert missing.status_code == 404
    assert missing.json()["error"]["message"] == "There is no fact 4711."
