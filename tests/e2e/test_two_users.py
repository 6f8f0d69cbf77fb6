"""Two people on one hub never see, change or forget each other's things, by any door (I-30)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
import pytest

from annabelle.hub.security.users_file import add_user
from e2e.days import plan, reply
from hub.hubs import HubProcess, fresh_home, sse, wait_for
from support.scripted_model import Call, Reply, Rule, ScriptedServer
from support.timing import seconds

WORDS = {"owner": "Zephyrine lanterns", "ada": "Marzipan telescopes"}
SHOWING: dict[str, dict[str, object]] = {
    "list_facts": {"include_retired": True},
    "retrieve_memories": {"query": "What do we keep in the attic?", "limit": 50},
    "search_conversations": {"query": "Who keeps what in the attic?", "limit": 50},
    "query_timeline": {"date_from": "2020-01-01", "limit": 200},
    "get_profile": {},
    "profile_history": {},
    "list_contacts": {},
    "list_projects": {},
    "list_project_sources": {},
}


@dataclass
class Person:
    """Somebody with a token, and what is theirs."""

    name: str
    http: httpx.Client
    ids: dict[str, int]
    messages: list[dict[str, Any]]

    @property
    def words(self) -> str:
        return WORDS[self.name]

    def tool(self, name: str, /, **arguments: object) -> dict[str, Any]:
        answer = self.http.post("/tools/call", json={"name": f"memory_{name}", "arguments": arguments})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def row(self, tool: str, what: str, **arguments: object) -> int:
        made = self.tool(tool, **arguments)
        assert not made["is_error"], made
        return made["structured"][what]["id"]

    def say(self, text: str, **more: object) -> dict[str, Any]:
        answer = self.http.post("/message", params={"wait": seconds(60)}, json={"text": text, **more}).json()
        self.messages.append(answer)
        return answer

    def settle(self) -> None:
        """Tell facts, contacts and projects, by chat and by tools."""
        fact = {"fact": f"Keeps {self.words} in the attic", "category": "background"}
        self.say(plan(f"You keep {self.words}.", ("memory_store_fact", fact)))
        (known,) = self.tool("list_facts")["structured"]["facts"]
        contact = self.row("create_contact", "contact", name=f"Friend of {self.words}", email="friend@example.org")
        project = self.row(
            "create_project", "project", name="Attic", description=self.words, primary_contact_id=contact
        )
        source = self.row(
            "link_project_source", "source", project_id=project, mcp_name="tracker", external_project_name=self.words
        )
        self.tool("update_profile", updates={"user": {"attic": self.words}})
        self.ids = {"fact": known["id"], "contact": contact, "project": project, "source": source}
        wait_for(lambda: self.tool("get_memory_stats")["structured"]["conversations"], "the turn in the memory")

    def everything(self) -> str:
        """All that the memory shows this person of their own."""
        return json.dumps([self.tool(name, **arguments)["structured"] for name, arguments in SHOWING.items()])


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    made = HubProcess(fresh_home(tmp_path_factory.mktemp("two")), model.openai_url).start()
    yield made
    made.end()


@pytest.fixture(scope="module")
def people(hub: HubProcess) -> Iterator[tuple[Person, Person]]:
    """The owner and ada, each with the same kinds of things."""
    token = add_user(hub.home.users_file, "ada")
    with httpx.Client(base_url=hub.url, headers={"X-Annabelle-Token": token}, timeout=seconds(90)) as http:
        both = Person("owner", hub.http, {}, []), Person("ada", http, {}, [])
        for one in both:
            one.settle()
        yield both


@pytest.fixture
def pairs(people: tuple[Person, Person]) -> list[tuple[Person, Person]]:
    """Each person, with the other one."""
    return [people, people[::-1]]


@pytest.fixture(autouse=True)
def nothing_of_anybody_changes(people: tuple[Person, Person]) -> Iterator[None]:
    """Whatever somebody tries, the other's things are as they were."""

    def facts() -> list[object]:
        looks = ("list_facts", "get_profile", "list_contacts", "list_projects", "list_project_sources")
        return [one.tool(name)["structured"] for one in people for name in looks]

    before = facts()
    yield
    assert facts() == before


@pytest.mark.req("MEM-11", "MEM-02")
@pytest.mark.incident("I-30")
def test_no_tool_shows_what_belongs_to_somebody_else(pairs: list[tuple[Person, Person]]) -> None:
    for one, other in pairs:
        for name, arguments in SHOWING.items():
            shown = json.dumps(one.tool(name, **arguments))
            assert one.words in shown, f"{name} shows {one.name} nothing"
            assert other.words not in shown, f"{name} shows {one.name} what is {other.name}'s"
            for agent_id in (other.name, f"{other.name}/annabelle", "annabelle", "main"):
                assert other.words not in json.dumps(one.tool(name, **arguments, agent_id=agent_id)), (name, agent_id)
        for name in ("retrieve_memories", "search_conversations"):
            assert other.words not in json.dumps(one.tool(name, query=other.words))
        assert other.words not in json.dumps(one.tool("query_timeline", date_from="2020-01-01", query=other.words))
        counted = one.tool("get_memory_stats")["structured"]
        assert (counted["current_facts"], counted["contacts"], counted["projects"]) == (1, 1, 1)


@pytest.mark.req("MEM-11", "MEM-09")
@pytest.mark.incident("I-30")
def test_somebody_elses_row_is_missing_in_the_words_of_one_that_never_was(pairs: list[tuple[Person, Person]]) -> None:
    for one, other in pairs:
        theirs = other.ids
        attempts: list[tuple[str, str, dict[str, object]]] = [
            ("explain_fact", "fact_id", {}),
            ("update_fact", "fact_id", {"fact": "Keeps nothing at all"}),
            ("delete_fact", "fact_id", {}),
            ("restore_fact", "fact_id", {}),
            ("store_fact", "replaces", {"fact": "Keeps nothing at all", "category": "background"}),
            ("update_contact", "contact_id", {"name": "Nobody"}),
            ("create_project", "primary_contact_id", {"name": "New"}),
            ("update_project", "project_id", {"name": "Nothing"}),
            ("link_project_source", "project_id", {"mcp_name": "mine"}),
            ("unlink_project_source", "project_id", {"mcp_name": "tracker"}),
            ("list_project_sources", "project_id", {}),
            ("update_project_source_status", "project_source_id", {"last_status": "error"}),
        ]
        rows = {"fact_id": "fact", "replaces": "fact", "contact_id": "contact", "primary_contact_id": "contact",
                "project_id": "project", "project_source_id": "source"}  # fmt: skip
        for tool, field, more in attempts:
            number = theirs[rows[field]]
            refused, missing = (one.tool(tool, **{field: value}, **more) for value in (number, 424242))
            assert refused["error"]["code"] == missing["error"]["code"] == "not_found", (tool, refused)
            assert refused["text"].replace(str(number), "424242") == missing["text"], tool
            for agent_id in (other.name, "annabelle"):
                again = one.tool(tool, **{field: number}, **more, agent_id=agent_id)
                assert again["error"]["code"] == "not_found", (tool, agent_id)
        assert one.tool("list_projects", contact_id=theirs["contact"])["structured"]["projects"] == []


@pytest.mark.req("MEM-08")
@pytest.mark.incident("I-30")
def test_exports_are_apart_and_nobody_imports_another_persons(people: tuple[Person, Person], hub: HubProcess) -> None:
    owner, ada = people
    folders: dict[str, str] = {}
    for one, other in (people, people[::-1]):
        for kind in ("markdown", "json"):
            made = one.tool("export_memory", format=kind)["structured"]
            folders[one.name] = made["folder"]
            pages = {path.name: path.read_text() for path in hub.home.memory_export.rglob("*") if path.is_file()}
            assert pages
            for name in made["files"]:
                text = (hub.home.memory_export / made["folder"] / name).read_text()
                assert other.words not in text, name
        assert one.words in (hub.home.memory_export / folders[one.name] / "facts.md").read_text()
    assert not folders["ada"].startswith(f"{folders['owner']}/")
    assert owner.tool("import_memory", file_path=folders["ada"])["is_error"]
    assert owner.tool("import_memory", file_path=f"{folders['ada']}/facts.md")["is_error"]
    call = {"name": "memory_import_memory", "arguments": {"file_path": f"{folders['owner']}/facts.md"}}
    assert ada.http.post("/tools/call", json=call).status_code == 403


@pytest.mark.req("TRU-09", "MEM-07")
@pytest.mark.incident("I-30")
def test_only_the_owner_may_forget_or_restore_and_tidying_stays_with_ones_own(people: tuple[Person, Person]) -> None:
    owner, ada = people
    for body in ({"text": owner.words}, {"factId": owner.ids["fact"]}, {"text": owner.words, "preview": False}):
        assert ada.http.post("/memory/forget", json=body).status_code == 403
    for name in ("memory_list_backups", "memory_restore_backup"):
        assert ada.http.post("/tools/call", json={"name": name}).status_code == 403
    for name in ("memory_forget_text", "memory_forget_matches", "memory_tidy_plan", "memory_apply_tidy"):
        for one in people:
            assert one.http.post("/tools/call", json={"name": name}).status_code in (403, 404), name
    for one, other in (people, people[::-1]):
        plans = one.http.post("/memory/tidy", json={}).json()
        assert other.words not in json.dumps(plans)
        steal: dict[str, object] = {"kind": "delete", "factIds": [other.ids["fact"]]}
        refused = one.http.post("/memory/tidy", json={"apply": True, "actions": [steal]})
        assert not refused.json().get("applied"), refused.text
        assert other.words not in refused.text
        learnt = one.http.post("/memory/learn", json={})
        assert other.words not in learnt.text
    for path in ("/status", "/agents", "/costs", "/settings"):
        assert ada.http.get(path).status_code in (403, 404), path


@pytest.mark.req("MEM-12", "THR-04")
@pytest.mark.incident("I-30")
def test_threads_events_and_prompts_hold_ones_own_words_alone(
    pairs: list[tuple[Person, Person]], rules: ScriptedServer
) -> None:
    for one, other in pairs:
        listed = {thread["id"] for thread in one.http.get("/threads").json()["threads"]}
        foreign = other.messages[0]
        assert foreign["threadId"] not in listed
        for path in (
            f"/messages/{foreign['messageId']}", f"/messages/{foreign['messageId']}/events",
            f"/threads/{foreign['threadId']}/messages", f"/threads/{foreign['threadId']}/events",
        ):  # fmt: skip
            assert one.http.get(path).status_code == 404, path
        assert one.http.post(f"/messages/{foreign['messageId']}/cancel").status_code == 404
        with one.http.stream("GET", "/events") as stream:
            events = sse(stream.iter_lines())
            hidden = other.say("What do I keep in the attic at night?")
            seen = one.say("What do I keep in the attic by day?")
            for event in events:
                data = event["data"]
                assert isinstance(data, dict)
                assert hidden["threadId"] not in json.dumps(data)
                assert other.words not in json.dumps(data)
                if event["event"] == "done" and seen["threadId"] in json.dumps(data):
                    break
        for person, stranger, question in ((one, other, "by day"), (other, one, "at night")):
            asked = [r.body for r in rules.requests if r.conversation.user_text.endswith(f"in the attic {question}?")]
            assert asked
            assert person.words in json.dumps(asked[-1])
            assert stranger.words not in json.dumps(asked[-1])
    for one, other in pairs:
        looks = plan("{result}", ("memory_retrieve_memories", {"query": other.words, "agent_id": "main"}))
        assert f"Keeps {other.words}" not in json.dumps(one.say(looks, chatId="curious"))
        names = plan("{result}", ("memory_list_facts", {"agent_id": other.name}))
        assert "own memory" in json.dumps(one.say(names, chatId="curious"))


@pytest.mark.req("TRU-09", "MEM-09")
@pytest.mark.incident("I-30")
def test_an_agent_reaches_no_tool_that_is_for_people_or_for_the_hub(
    people: tuple[Person, Person], rules: ScriptedServer
) -> None:
    owner, _ = people
    tools: dict[str, dict[str, object]] = {
        "memory_restore_backup": {}, "memory_list_backups": {}, "memory_undo_change": {}, "memory_list_changes": {},
        "memory_restore_fact": {"fact_id": 1}, "memory_forget_text": {"texts": ["lanterns"]},
        "memory_forget_matches": {"texts": ["lanterns"]}, "memory_apply_tidy": {"actions": []},
        "memory_tidy_plan": {}, "memory_mark_extracted": {"conversation_ids": [1]}, "memory_list_unextracted": {},
    }  # fmt: skip
    calls = [[{"name": name, "arguments": arguments} for name, arguments in tools.items()]]
    done = owner.say(json.dumps({"calls": calls, "say": "Done."}), chatId="agent")
    assert reply(done) == f"I stopped because {len(tools)} tool calls in a row failed."
    assert done["reply"]["metadata"]["tools_used"] == []
    told = set(rules.requests[-1].conversation.tools)
    assert not set(tools) & told, "and it is not even told of them"
    assert "store_fact" in told


@pytest.mark.req("POL-03", "TRU-05", "GRD-08")
@pytest.mark.incident("I-10", "I-30")
def test_questions_decisions_rules_audit_and_stop_are_out_of_anothers_reach(
    people: tuple[Person, Person], rules: ScriptedServer
) -> None:
    owner, ada = people
    letter = {"path": "letter.txt", "content": "to nobody"}
    assert owner.http.post("/tools/call", json={"name": "filer_create_file", "arguments": letter}).status_code == 200
    removes = Reply(tool_calls=[Call(name="filer_delete_file", arguments={"path": "letter.txt"})])
    rules.rules(Rule(match="Make some room$", results=0, reply=removes))
    sent = owner.say("Make some room", chatId="room")
    assert "May I call filer delete file?" in reply(sent), sent
    (question,) = (one for one in owner.http.get("/approvals").json()["approvals"] if one["state"] == "pending")
    assert ada.http.get("/approvals").json()["approvals"] == []
    where = f"/approvals/{question['id']}"
    assert ada.http.get(where).status_code == 404
    for answer in ({"verdict": "approve"}, {"verdict": "deny"}, {"verdict": "approve", "always": True}):
        assert ada.http.post(where, json=answer).status_code == 404
    assert ada.http.post(f"/messages/{sent['messageId']}/cancel").status_code == 404
    ada.say("/stop", chatId="room")
    rule = owner.http.post("/rules", json={"words": "never send anything to Zed"}).json()
    assert rule["id"] not in ada.http.get("/rules").text
    for verb in ("confirm", "revoke"):
        assert ada.http.post(f"/rules/{rule['id']}/{verb}").status_code == 404
    for path in ("/stop", "/kill", "/resume"):
        assert ada.http.post(path, json={}).status_code == 403, path
    assert ada.http.get("/audit").status_code == 403
    for tool in ("guardian_get_scan_log", "guardian_scan_content"):
        assert ada.http.post("/tools/call", json={"name": tool, "arguments": {}}).status_code in (403, 404), tool

    assert owner.http.get(where).json()["state"] == "pending", "nobody else has answered or ended it"
    assert owner.http.post(where, json={"verdict": "deny"}).status_code == 200
    going_on = wait_for(lambda: owner.http.get(where).json()["continuedBy"], "the turn to go on")
    wait_for(lambda: owner.http.get(f"/messages/{going_on}").json()["state"] == "done", "its end")
    for path in (f"/messages/{going_on}", f"/messages/{going_on}/events"):
        assert ada.http.get(path).status_code == 404, path
    assert owner.http.post(f"/rules/{rule['id']}/revoke").status_code == 200
