"""Standing rules in the hub: noticed, held, told, proposed, and nobody else's to change."""

from __future__ import annotations

from collections.abc import Callable

import httpx2 as httpx
import pytest

from annabelle.core.errors import InvalidArguments, NotAllowed, NotFound
from annabelle.core.messages import InboundMessage
from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK
from annabelle.core.tools import CallContext, JsonObject
from annabelle.hub.conversations.event_log import EventFanout, EventLog, WriteResult
from annabelle.hub.security.identities import CallerIdentity, authorize_path
from annabelle.hub.security.users_file import add_user
from annabelle.hub.tools.chat import propose_rule_tool
from annabelle.hub.trust.rules import RuleOrigin, StandingRules, StoredRules
from annabelle.policy.rules.rule import RuledCall, matches
from annabelle.store import messages, threads
from annabelle.store.database import Database
from annabelle.store.messages import QueueLimits
from annabelle.store.tables import rules as table
from hub.hubs import HubProcess
from support.few_servers import only
from support.scripted_model import plan_text

DELETE = RuledCall("gmail_delete_email", ("destroy",), {"message_id": "m1"})


class Notes:
    """An audit that is kept in a list."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, object]] = []

    def note(self, kind: str, facts: JsonObject, trace_id: str | None = None) -> None:
        self.noted.append((kind, facts["what"]))


@pytest.fixture
def log(database: Database) -> EventLog:
    return EventLog(database, EventFanout())


@pytest.fixture
def audit() -> Notes:
    return Notes()


@pytest.fixture
def standing(database: Database, log: EventLog, audit: Notes) -> StandingRules:
    return StandingRules(database, log, audit)


@pytest.fixture
def say(log: EventLog, standing: StandingRules) -> Callable[[str], object]:
    """Have a person say something; the place it was said at."""

    async def said(text: str) -> RuleOrigin:
        message = InboundMessage(channel="cli", chat_id="main", sender_id="ada", text=text)

        def store(conn) -> WriteResult[RuleOrigin]:
            thread = threads.find_or_create_thread(
                conn, channel="cli", chat_id="main", user_id="owner", agent_id="annabelle"
            )
            messages.queue_message(conn, thread, message, QueueLimits())
            place = RuleOrigin("owner", thread.id, message.id)
            return WriteResult(place, "owner", standing.add_stated_rules(conn, message, place))

        return await log.transact(store)

    return said


@pytest.mark.req("TRU-05")
async def test_a_rule_in_a_message_holds_at_once_and_the_person_is_told_how_to_keep_or_drop_it(
    say, standing: StandingRules, database: Database, audit: Notes
) -> None:
    place = await say("Hello. Always ask before deleting mail. What is new?")
    (rule,) = await standing.listing("owner")
    assert (rule.state, rule.kind, rule.words) == ("stated", "ask", "Always ask before deleting mail.")
    (held,) = await StoredRules(database).for_call("owner", "annabelle")
    assert matches(held, DELETE)
    (event,) = await database.read(lambda conn: threads.list_message_events(conn, place.message_id, "owner"))
    assert event.type == "notice"
    assert "Before anything that deletes mail: ask you." in str(event.data["text"])
    assert f"annabelle rules revoke {rule.id}" in str(event.data["text"])
    await standing.confirm(rule.id, "owner")
    await say("As I said: always ask before deleting mail.")
    assert [one.state for one in await standing.listing("owner")] == ["active"], "said twice is one rule"
    await standing.revoke(rule.id, "owner")
    assert await StoredRules(database).for_call("owner", "annabelle") == ()
    assert audit.noted == [("rule", "stated"), ("rule", "confirmed"), ("rule", "revoked")]


@pytest.mark.req("TRU-05")
async def test_what_was_said_in_passing_forbids_only_once_it_is_confirmed(
    say, standing: StandingRules, database: Database
) -> None:
    place = await say("What a day. Never delete mail, just read it aloud to me. What is new?")
    (rule,) = await standing.listing("owner")
    (held,) = await StoredRules(database).for_call("owner", "annabelle")
    assert (held.kind, matches(held, DELETE)) == ("ask", True)
    (event,) = await database.read(lambda conn: threads.list_message_events(conn, place.message_id, "owner"))
    for text in (held.words, str(event.data["text"])):
        assert f"annabelle rules confirm {rule.id}, or: annabelle rules revoke {rule.id}" in text
    await standing.confirm(rule.id, "owner")
    (held,) = await StoredRules(database).for_call("owner", "annabelle")
    assert (held.kind, held.words) == ("never", "Never delete mail")


@pytest.mark.req("TRU-05")
@pytest.mark.incident("I-13")
async def test_an_agent_can_propose_a_rule_and_nothing_more(say, standing: StandingRules, database: Database) -> None:
    place = await say("Be careful with my mail")
    context = CallContext(
        caller="agent", agent_id="annabelle", user_id="owner", thread_id=place.thread_id, message_id=place.message_id
    )
    tool = propose_rule_tool(standing)
    proposed = await tool.call(tool.spec(), {"rule": "never delete mail"}, context)
    assert "not yet in force" in proposed.text
    assert await StoredRules(database).for_call("owner", "annabelle") == ()
    refused = await tool.call(tool.spec(), {"rule": "always allow everything"}, context)
    assert refused.is_error
    assert "not a rule" in refused.text
    for act in ("/rules", "/rules/rule_1/confirm", "/rules/rule_1/revoke", "/servers/mailer/accept"):
        with pytest.raises(NotAllowed):
            authorize_path(CallerIdentity("agent", agent_id="annabelle"), act)


@pytest.mark.req("TRU-05")
async def test_each_person_has_their_own_rules_and_bad_words_keep_nothing(
    standing: StandingRules, database: Database
) -> None:
    rule = await standing.add("ada", "Never send anything to Bob")
    for act in (standing.confirm, standing.revoke):
        with pytest.raises(NotFound):
            await act(rule.id, "owner")
    assert await StoredRules(database).for_call("owner", "annabelle") == ()
    with pytest.raises(InvalidArguments, match="condition “after”") as refused:
        await standing.add("owner", "never send mail after 8 pm")
    assert refused.value.hint is not None
    assert await standing.listing("owner") == []


@pytest.mark.req("TRU-05", "POL-05")
@pytest.mark.incident("I-14")
async def test_what_was_forgotten_out_of_a_rule_makes_it_wider_and_an_allowance_void(
    standing: StandingRules, database: Database
) -> None:
    await standing.add("owner", "Never delete mail from Bob")

    def forget(conn) -> None:
        conn.execute(
            table.update().values(words=FORGOTTEN_MASK, match={"classes": ["destroy"], "mentions": [FORGOTTEN_MASK]})
        )
        allowed: JsonObject = {"tools": ["gmail_*"], "arguments": {"to": [FORGOTTEN_MASK]}}
        conn.execute(table.insert().values(**{**_row(conn), "id": "rule_2", "kind": "allow", "match": allowed}))
        conn.execute(table.insert().values(**{**_row(conn), "id": "rule_3", "match": {"unknown": 1}}))

    def _row(conn) -> JsonObject:
        return dict(conn.execute(table.select().limit(1)).mappings().one())

    await database.write(forget)
    held = {rule.id: rule for rule in await StoredRules(database).for_call("owner", "annabelle")}
    assert "rule_2" not in held
    assert [(rule.kind, matches(rule, DELETE)) for rule in held.values()] == [("ask", True), ("ask", True)]


@pytest.mark.req("TRU-05")
@pytest.mark.incident("I-14")
def test_a_rule_is_held_when_the_conversation_that_stated_it_is_gone(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub(**only("filer")).start()

    def ask_to_delete(name: str) -> tuple[dict[str, object], bool]:
        path = hub.home.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        plan = plan_text([("filer_delete_file", {"path": name})], say="deleted")
        answer = hub.say(f"Delete the file {name}\n{plan}")
        return answer, path.exists()

    answer, there = ask_to_delete("first.txt")
    assert not there, f"without a rule an order that names the file is enough: {answer}"
    hub.say(f"Always ask before deleting files.\n{plan_text(say='I will.')}")
    hub.http.post(f"/threads/{answer['threadId']}/clear").raise_for_status()
    hub.stop()
    hub.start()
    answer, there = ask_to_delete("second.txt")
    assert there, "nothing of the rule is in the context any more, and it is held"
    (question,) = hub.http.get("/approvals").json()["approvals"]
    assert (question["tool"], question["state"]) == ("filer_delete_file", "pending")
    assert "Your rule says: Always ask before deleting files." in question["reasons"]

    (rule,) = hub.http.get("/rules").json()["rules"]
    assert (rule["state"], rule["reading"]) == ("stated", "Before anything that deletes files: ask you.")
    assert hub.http.post(f"/rules/{rule['id']}/confirm").json()["state"] == "active"
    token = add_user(hub.home.users_file, "ada")
    with httpx.Client(base_url=hub.url, headers={"X-Annabelle-Token": token}) as ada:
        assert ada.get("/rules").json() == {"rules": []}
        assert ada.post(f"/rules/{rule['id']}/revoke").status_code == 404
        assert ada.post("/rules", json={"words": "Never delete files"}).json()["state"] == "active"
    assert hub.http.post(f"/rules/{rule['id']}/revoke").json()["state"] == "revoked"
    answer, there = ask_to_delete("third.txt")
    assert not there, f"what was revoked holds no more: {answer}"
