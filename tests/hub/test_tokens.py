"""Several tokens for one person: what each may do, and that none gives more than the one it was made with (I-03)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2 as httpx
import pytest
from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError, ConfigMistake, NotFound, Unauthorized
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.app import make_app
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import assemble
from annabelle.hub.context import HubContext
from annabelle.hub.instance import bind_port
from annabelle.hub.security.users_file import (
    KIND_SCOPES,
    SCOPES,
    UserTokens,
    add_user,
    hash_token,
    read_users,
    remove_user,
)
from annabelle.store import messages, rules, tool_calls
from annabelle.toolbox.catalogue import NativeTool
from support.timing import seconds
from support.toolbox import eventually

_ACTS = ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=False)
_READS = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)


class Person:
    """Makes clients that hold a token of the owner's."""

    def __init__(self, hub: HubContext, home: Home, stack: AsyncExitStack) -> None:
        self.hub, self.home, self._stack = hub, home, stack
        self.done: list[tuple[str, str]] = []

    async def client(self, token: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(make_app(self.hub))
        headers = {"X-Annabelle-Token": token}
        made = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers)
        return await self._stack.enter_async_context(made)

    async def main(self) -> httpx.AsyncClient:
        return await self.client(self.home.token_file.read_text().strip())

    async def make(self, name: str, kind: str, *scopes: str, by: httpx.AsyncClient | None = None) -> httpx.AsyncClient:
        body = {"name": name, "kind": kind, "scopes": list(scopes) or None}
        made = await (by or await self.main()).post("/tokens", json=body)
        assert made.status_code == 200, made.text
        return await self.client(made.json()["secret"])


@pytest.fixture
async def person(home: Home) -> AsyncIterator[Person]:
    settings = Settings.model_validate(
        {"annabelle_port": 0, "nursery_enabled": False, "thinker_warm_spare": False, "guardian_enabled": False}
    )
    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            hub = (await assemble(HubStart(home, settings, Redactor(), sock, None), stack)).hub
            await hub.agents.start()
            made = Person(hub, home, stack)

            def tool(name: str, annotations: ToolAnnotations, audience: str = "everyone") -> NativeTool:
                async def act(_arguments: JsonObject, context: CallContext) -> ToolResult:
                    made.done.append((name, context.caller))
                    return ToolResult(text="done")

                return NativeTool(name, name, {"type": "object"}, act, annotations, audience=audience)  # type: ignore[arg-type]

            names = ("filer_delete_file", "memory_update_profile", "gmail_send_email", "filer_create_file")
            hub.toolbox.add_native([tool(name, _ACTS) for name in names])
            hub.toolbox.add_native([tool("everyday_get_time", _READS), tool("for_people", _READS, "people")])
            hub.base.lifecycle.mark_ready()
            yield made


def said(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json()["error"]["message"])


@pytest.mark.incident("I-03")
async def test_no_token_gives_a_scope_that_it_does_not_have_itself(person: Person) -> None:
    small = await person.make("small", "person", "talk", "tokens")
    for kind in KIND_SCOPES:
        for scope in SCOPES - {"talk", "tokens"}:
            refused = await small.post("/tokens", json={"name": "more", "kind": kind, "scopes": ["talk", scope]})
            assert said(refused) == (403, f"Your own token has no scope {scope}, so it can not give it.")
    made = (await small.post("/tokens", json={"name": "child", "kind": "person"})).json()
    assert set(made["scopes"]) == {"talk", "tokens"}, "by default no more than the one that makes it"
    listed = (await (await person.main()).get("/tokens")).json()["tokens"]
    assert [one["name"] for one in listed] == ["main", "small", "child"]


@pytest.mark.req("UX-02")
async def test_no_token_is_called_like_a_session_of_the_page(person: Person) -> None:
    refused = await (await person.main()).post("/tokens", json={"name": "page-7", "kind": "agent"})
    assert said(refused) == (409, "page-7 is the name of a session of the page.")


@pytest.mark.incident("I-03")
async def test_to_rotate_a_token_gives_nobody_more_than_they_had(person: Person) -> None:
    small = await person.make("small", "person", "talk", "tokens")
    mighty = await person.make("mighty", "person")
    before = person.home.users_file.read_text()
    status, sentence = said(await small.post("/tokens/mighty/rotate"))
    assert (status, "so it can not give it" in sentence) == (403, True)
    assert said(await small.post("/tokens/main/rotate"))[0] == 403
    assert person.home.users_file.read_text() == before
    assert (await mighty.get("/status")).status_code == 200
    own = (await small.post("/tokens/small/rotate")).json()
    assert (own["kind"], own["scopes"]) == ("person", ["talk", "tokens"])
    assert (await small.get("/tokens")).status_code == 401, "the old secret is no longer good"
    again = await person.client(own["secret"])
    assert (await again.get("/tokens")).status_code == 200
    assert (await again.get("/status")).status_code == 403


@pytest.mark.incident("I-03")
@pytest.mark.parametrize("kind", ["device", "agent"])
async def test_devices_and_agents_manage_no_tokens(person: Person, kind: str) -> None:
    other = await person.make("other", kind)
    sentence = (403, "The token other has no scope tokens.")
    assert said(await other.get("/tokens")) == sentence
    assert said(await other.post("/tokens", json={"name": "x", "kind": "person"})) == sentence
    assert said(await other.post("/tokens/other/rotate")) == sentence
    assert said(await other.post("/tokens/other/revoke")) == sentence
    refused = await (await person.main()).post("/tokens", json={"name": "x", "kind": kind, "scopes": ["tokens"]})
    assert said(refused) == (403, f"A token of the kind {kind} can not have the scope tokens.")


async def test_every_path_needs_its_scope(person: Person) -> None:
    paths = {
        "talk": "/messages/msg_1",
        "threads": "/threads",
        "tools": "/tools/list",
        "approve": "/approvals",
        "manage": "/status",
        "tokens": "/tokens",
    }
    assert paths.keys() == SCOPES
    for scope in paths:
        one = await person.make(f"only-{scope}", "person", scope)
        for needed, path in paths.items():
            allowed = (await one.get(path)).status_code != 403
            assert allowed == (needed == scope), (scope, path)
        assert (await one.get("/openapi.json")).status_code == 200


async def test_a_list_shows_what_each_may_and_when_it_was_used_and_never_the_secret(person: Person) -> None:
    main = await person.main()
    secret = (await main.post("/tokens", json={"name": "phone", "kind": "device"})).json()["secret"]
    await main.post("/tokens", json={"name": "ci", "kind": "agent", "scopes": ["talk"]})
    assert (await (await person.client(secret)).get("/threads")).status_code == 200
    listed = await main.get("/tokens")
    first, phone, ci = listed.json()["tokens"]
    assert (first["name"], first["kind"], set(first["scopes"])) == ("main", "person", SCOPES)
    assert (phone["kind"], ci["kind"], ci["scopes"]) == ("device", "agent", ["talk"])
    assert (first["lastUsedAt"] is None, phone["lastUsedAt"] is None, ci["lastUsedAt"]) == (False, False, None)
    kept = person.home.users_file.read_text()
    for text in (listed.text, kept, json.dumps((await main.get("/audit")).json())):
        assert secret not in text
    assert hash_token(secret.encode()) not in listed.text
    await person.hub.security.users.stop()
    assert phone["lastUsedAt"][:16] in person.home.token_uses_file.read_text(), "known after a restart"


@pytest.mark.incident("I-30")
async def test_each_person_has_tokens_of_their_own(person: Person) -> None:
    ada = await person.client(add_user(person.home.users_file, "ada"))
    main = await person.main()
    hers = await person.make("phone", "device", by=ada)
    await person.make("phone", "device", by=main)
    assert (await hers.get("/threads")).status_code == 200
    assert (await hers.get("/status")).status_code == 403, "what is the owner's stays the owner's"
    assert [one["name"] for one in (await ada.get("/tokens")).json()["tokens"]] == ["main", "phone"]
    assert (await main.post("/tokens/phone/revoke")).status_code == 200
    assert (await hers.get("/threads")).status_code == 200
    remove_user(person.home.users_file, "ada")
    person.hub.security.users.reload_if_changed()
    assert (await hers.get("/threads")).status_code == 401
    add_user(person.home.users_file, "ada")
    assert (await hers.get("/threads")).status_code == 401, "who is let in again starts without old tokens"


async def test_tokens_of_before_are_a_persons_with_every_scope(home: Home, tmp_path: Path) -> None:
    token = add_user(home.users_file, "ada")
    assert "tokens" not in json.loads(home.users_file.read_text()), "the file of an earlier version"
    (user,) = read_users(home.users_file).users
    assert user.token_sha256 == hash_token(token.encode())
    made, _ = UserTokens(home.users_file, "ada", user.token_sha256, SCOPES).add("phone", "device", None)
    after = read_users(home.users_file)
    assert (after.users, after.tokens) == ((user,), (made,))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scopes": ["approve"]}, "which has no scope approve"),
        ({"name": "main"}, "main is the name of the token a person begins with"),
        ({"userId": "nobody"}, "there is no user nobody"),
        ({"kind": "robot"}, "kind"),
    ],
)
def test_a_bad_edit_of_a_token_is_told_in_a_sentence(home: Home, change: JsonObject, sentence: str) -> None:
    UserTokens(home.users_file, "owner", "", SCOPES).add("ci", "agent", None)
    kept = json.loads(home.users_file.read_text())
    kept["tokens"][0] |= change
    home.users_file.write_text(json.dumps(kept))
    with pytest.raises(ConfigMistake, match=sentence):
        read_users(home.users_file)


def test_names_are_used_once_and_their_number_is_bounded(home: Home) -> None:
    tokens = UserTokens(home.users_file, "owner", "", SCOPES)
    tokens.add("ci", "agent", None)
    for name in ("ci", "main"):
        with pytest.raises(AnnabelleError, match=f"There is a token {name} already"):
            tokens.add(name, "agent", None)
    for number in range(49):
        tokens.add(f"t{number}", "agent", None)
    with pytest.raises(AnnabelleError, match="There are 50 tokens already"):
        tokens.add("one-more", "agent", None)


@pytest.mark.incident("I-03")
def test_a_revoked_token_makes_no_other_even_if_its_request_had_begun(home: Home) -> None:
    owner = UserTokens(home.users_file, "owner", "", SCOPES)
    made, _ = owner.add("laptop", "person", None)
    laptop = UserTokens(home.users_file, "owner", made.token_sha256, SCOPES)
    owner.revoke("laptop")
    for act in (lambda: laptop.add("other", "person", None), lambda: laptop.rotate("laptop")):
        with pytest.raises(Unauthorized, match="The token was revoked"):
            act()
    assert read_users(home.users_file).tokens == ()


def test_changes_at_once_lose_nothing_and_one_revocation_of_two_finds_nothing(home: Home) -> None:
    names = [f"t{number}" for number in range(16)]
    start = threading.Barrier(16)

    def act(name: str, revoke: bool) -> bool:
        tokens = UserTokens(home.users_file, "owner", "", SCOPES)
        start.wait(seconds(20))
        try:
            tokens.revoke(name) if revoke else tokens.add(name, "device", None)
        except NotFound:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(act, names, [False] * 16))
        assert {one.name for one in read_users(home.users_file).tokens} == set(names)
        twice = list(pool.map(act, names[:8] * 2, [True] * 16))
    assert sum(twice) == 8
    assert {one.name for one in read_users(home.users_file).tokens} == set(names[8:])


@pytest.mark.incident("I-10")
async def test_who_waits_for_an_answer_with_a_revoked_token_gets_none(person: Person) -> None:
    main = await person.main()
    device = await person.make("phone", "device")
    other = await person.make("tablet", "device")
    sent = (await device.post("/message", json={"text": "hello"})).json()
    path = f"/messages/{sent['messageId']}"
    waiting = asyncio.ensure_future(device.get(path, params={"wait": 600}))
    await eventually(lambda: person.hub.conversations.reply_waiters._waiting)
    revoked = await main.post("/tokens/phone/revoke")
    assert revoked.status_code == 200
    answer = await asyncio.wait_for(waiting, seconds(10))
    assert said(answer) == (401, "The token was revoked.")
    assert (await other.get(path)).status_code == 200


@pytest.mark.incident("I-03")
async def test_a_message_that_ends_after_its_token_was_revoked_is_not_taken_in(person: Person) -> None:
    main, device = await person.main(), await person.make("phone", "device")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b'{"text": "still '
        begun.set()
        await go_on.wait()
        yield b'here"}'

    sending = asyncio.ensure_future(device.post("/message", content=body()))
    await asyncio.wait_for(begun.wait(), seconds(10))
    assert (await main.post("/tokens/phone/revoke")).status_code == 200
    go_on.set()
    assert said(await asyncio.wait_for(sending, seconds(10))) == (401, "The token was revoked.")
    assert (await main.get("/threads")).json()["threads"] == []


@pytest.mark.incident("I-04")
async def test_an_agents_token_answers_no_question_changes_no_rule_and_writes_no_note(person: Person) -> None:
    agent = await person.make("ci", "agent")
    sentence = (403, "The token ci has no scope approve.")
    for path in ("/approvals/apr_1", "/rules", "/rules/rule_1/confirm", "/rules/rule_1/revoke"):
        assert said(await agent.post(path, json={"verdict": "approve"})) == sentence
    assert said(await agent.post("/notes", json={"title": "x"})) == (403, "The token ci has no scope threads.")
    refused = await (await person.main()).post("/tokens", json={"name": "x", "kind": "agent", "scopes": ["approve"]})
    assert said(refused) == (403, "A token of the kind agent can not have the scope approve.")
    device = await person.make("phone", "device")
    assert (await device.get("/approvals")).status_code == 200


async def test_an_agent_speaks_in_a_place_of_its_own_and_makes_no_rules(person: Person) -> None:
    hub, main, agent = person.hub, await person.main(), await person.make("ci", "agent")
    await hub.agents.pause("annabelle", "not now")
    text = "Always ask before deleting mail."
    mine = (await main.post("/message", json={"text": "hello"})).json()
    sent = (await agent.post("/message", json={"text": text, "senderId": "owner", "channel": "api"})).json()
    stored = await hub.storage.database.read(lambda conn: messages.load_message(conn, sent["messageId"]))
    assert (stored.source, stored.sender_id, stored.channel) == ("outside_agent", "agent:ci", "agent:ci")
    assert sent["threadId"] != mine["threadId"]
    assert (await main.get("/rules")).json() == {"rules": []}
    read = hub.storage.database.read
    assert await read(lambda conn: tool_calls.list_person_words(conn, stored.id)) == []
    assert await read(lambda conn: tool_calls.list_untrusted_tools(conn, stored.id)) == ["message of agent:ci"]
    facts = await read(lambda conn: tool_calls.read_turn_provenance(conn, stored.id))
    assert (facts.words, facts.earlier, [one.result["text"] for one in facts.results]) == ("", (), [text])
    assert (await agent.get(f"/messages/{sent['messageId']}")).status_code == 200
    for path in (f"/messages/{mine['messageId']}", f"/messages/{mine['messageId']}/events"):
        assert (await agent.get(path)).status_code == 404
    assert (await agent.post(f"/messages/{mine['messageId']}/cancel")).status_code == 404


@pytest.mark.req("POL-02", "POL-04")
async def test_a_call_with_an_agents_token_is_judged_and_gives_no_order(person: Person) -> None:
    agent, device = await person.make("ci", "agent"), await person.make("phone", "device")

    async def call(who: httpx.AsyncClient, name: str, **more: object) -> httpx.Response:
        return await who.post("/tools/call", json={"name": name, "arguments": {"path": "cv.md"}, **more})

    for name in ("filer_delete_file", "filer_create_file", "gmail_send_email", "memory_update_profile"):
        refused = await call(agent, name)
        assert refused.status_code == 403, refused.text
        assert "This needs a yes" in said(refused)[1]
        assert "in a message, and the user is asked" in refused.json()["error"]["hint"]
    for forged in ({"call_id": "x:1"}, {"message_id": "msg_1"}):
        assert (await call(agent, "filer_delete_file", **forged)).status_code == 403
    assert (await call(agent, "for_people")).status_code in (403, 404)
    assert person.done == []
    assert (await call(agent, "everyday_get_time")).json()["text"] == "done"
    assert (await call(device, "filer_delete_file")).json()["text"] == "done"
    assert person.done == [("everyday_get_time", "agent"), ("filer_delete_file", "api")]
    listed = {tool["name"] for tool in (await agent.get("/tools/list")).json()["tools"]}
    assert "filer_delete_file" in listed
    assert not {"for_people", "queue_task", "spawn_subagent", "send_message"} & listed


async def test_another_agent_uses_no_allowance_of_ours_and_stops_with_it(person: Person) -> None:
    agent, hub = await person.make("ci", "agent"), person.hub
    call = {"name": "filer_delete_file", "arguments": {"path": "cv.md"}}
    match: JsonObject = {"tools": ["filer_delete_file"], "arguments": {"path": ["cv.md"]}}

    def allow(conn: Connection) -> object:
        return rules.add_allowance(conn, user_id="owner", agent_id="annabelle", words="Always.", match=match)

    await hub.storage.database.write(allow)
    refused = await agent.post("/tools/call", json=call)
    assert "This needs a yes" in said(refused)[1], "what annabelle may always do, another agent may not"
    assert (await agent.post("/tools/call", json={"name": "everyday_get_time"})).status_code == 200
    await hub.agents.pause("annabelle", "not now")
    stopped = await agent.post("/tools/call", json={"name": "everyday_get_time"})
    assert "is paused" in said(stopped)[1]
    assert person.done == [("everyday_get_time", "agent")]
