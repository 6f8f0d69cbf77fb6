"""Several people on one hub: each has their own token, threads, events and tools, and never another's (I-30)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2 as httpx
import pytest

from annabelle.core.home import Home
from annabelle.core.messages import InboundMessage
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.app import make_app
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import assemble
from annabelle.hub.context import HubContext
from annabelle.hub.conversations.event_log import EventReader, stream_events
from annabelle.hub.instance import bind_port
from annabelle.hub.security.users_file import add_user, hash_token, read_users, remove_user
from annabelle.store import claims, messages, threads
from annabelle.store.messages import QueueLimits
from annabelle.toolbox.catalogue import NativeTool
from support.timing import seconds


async def _echo(_arguments: JsonObject, context: CallContext) -> ToolResult:
    return ToolResult(text=f"{context.caller} {context.user_id} {context.agent_id}")


_READS = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
_ANY: JsonObject = {"type": "object"}


@pytest.fixture
async def hub(home: Home) -> AsyncIterator[HubContext]:
    """A hub in this process with a few tools of its own, and nothing else started."""
    settings = Settings.model_validate({"annabelle_port": 0, "nursery_enabled": False, "thinker_warm_spare": False})
    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            machine = await assemble(HubStart(home, settings, Redactor(), sock, None), stack)
            await machine.hub.agents.start()
            names = ("memory_list_facts", "memory_import_memory", "filer_read_file")
            machine.hub.toolbox.add_native([NativeTool(name, "x", _ANY, _echo, _READS) for name in names])
            machine.hub.base.lifecycle.mark_ready()
            yield machine.hub


def client(hub: HubContext, token: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(make_app(hub))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers={"X-Annabelle-Token": token})


@pytest.fixture
async def ada(hub: HubContext, home: Home) -> AsyncIterator[httpx.AsyncClient]:
    async with client(hub, add_user(home.users_file, "ada")) as made:
        yield made


@pytest.fixture
async def bob(hub: HubContext, home: Home) -> AsyncIterator[httpx.AsyncClient]:
    async with client(hub, add_user(home.users_file, "bob")) as made:
        yield made


@pytest.fixture
async def owner(hub: HubContext, home: Home) -> AsyncIterator[httpx.AsyncClient]:
    async with client(hub, home.token_file.read_text().strip()) as made:
        yield made


@pytest.mark.incident("I-30")
async def test_a_new_token_works_at_once_and_a_removed_one_no_longer(
    hub: HubContext, home: Home, ada: httpx.AsyncClient
) -> None:
    assert (await ada.get("/threads")).status_code == 200
    remove_user(home.users_file, "ada")
    hub.security.users.reload_if_changed()
    assert (await ada.get("/threads")).status_code == 401


@pytest.mark.incident("I-10")
async def test_a_stream_ends_when_its_token_is_taken_back(hub: HubContext, home: Home) -> None:
    tokens = {name: hash_token(add_user(home.users_file, name).encode()) for name in ("ada", "bob")}
    hub.security.users.reload_if_changed()
    database, fanout = hub.storage.database, hub.conversations.fanout
    streams = {
        name: stream_events(EventReader(name, None, 0, token), database, fanout, heartbeat=30)
        for name, token in tokens.items()
    }
    for one in streams.values():
        assert await anext(one) == b"retry: 1000\nid: 0\n\n"
    waiting = {name: asyncio.ensure_future(anext(one, None)) for name, one in streams.items()}
    remove_user(home.users_file, "ada")
    hub.security.users.reload_if_changed()
    assert await asyncio.wait_for(waiting["ada"], seconds(10)) is None
    assert not waiting["bob"].done()
    hub.conversations.fanout.close()
    assert await asyncio.wait_for(waiting["bob"], seconds(10)) is None


@pytest.mark.incident("I-30")
async def test_people_reach_what_is_their_own_and_nothing_of_the_owners(
    ada: httpx.AsyncClient, hub: HubContext
) -> None:
    for path in ("/threads", "/tools/list", "/openapi.json"):
        assert (await ada.get(path)).status_code == 200, path
    for path in (
        "/agents",
        "/costs",
        "/status",
        "/settings",
        "/internal/ledger/reserve",
        "/memory/forget",
        "/anything",
    ):
        assert (await ada.get(path)).status_code == 403, path
    document = hub_document(hub)
    open_to_people = set()
    for path in document["paths"]:
        filled = path.replace("{message_id}", "msg_1").replace("{thread_id}", "thr_1").replace("{agent_id}", "x")
        filled = filled.replace("{approval_id}", "apr_1").replace("{history_id}", "msg_1").replace("{name}", "phone")
        for method in document["paths"][path]:
            if path == "/events":
                continue  # a stream without an end, of the caller's own events
            if (await ada.request(method, filled, json={"nothing": 1})).status_code != 403:
                open_to_people.add(path)
    assert open_to_people == {
        "/health", "/message", "/messages/{message_id}", "/messages/{message_id}/cancel",
        "/messages/{message_id}/events", "/threads", "/threads/{thread_id}", "/threads/{thread_id}/clear",
        "/threads/{thread_id}/events",
        "/threads/{thread_id}/messages", "/threads/{thread_id}/messages/{message_id}/retry",
        "/threads/{thread_id}/messages/{message_id}/dismiss", "/threads/{thread_id}/histories",
        "/threads/{thread_id}/histories/{history_id}", "/threads/{thread_id}/histories/current", "/threads/search",
        "/tools/list", "/tools/call", "/memory/learn", "/memory/tidy",
        "/approvals", "/approvals/{approval_id}", "/rules", "/rules/{rule_id}/confirm", "/rules/{rule_id}/revoke",
        "/notes", "/links", "/notes/{note_id}", "/notes/{note_id}/delete", "/notes/{note_id}/move",
        "/notes/{note_id}/update", "/commands", "/tokens", "/tokens/{name}/rotate", "/tokens/{name}/revoke",
        "/hooks/{secret}",  # whoever knows the secret
        "/v1/models", "/v1/models/{model}", "/v1/chat/completions",
        "/goals", "/goals/reorder", "/goals/{named}", "/goals/{named}/update", "/goals/{named}/archive",
        "/goals/{named}/reopen", "/goals/{named}/delete", "/goals/{named}/reset", "/goals/{named}/check-in",
        "/goals/{named}/learnings", "/goals/{named}/learnings/{learning_id}/update",
        "/goals/{named}/learnings/{learning_id}/remove", "/goals/{named}/messages",
        "/tasks", "/tasks/{task_id}", "/tasks/{task_id}/retry", "/tasks/{task_id}/cancel",
        "/feed", "/feed/history", "/feed/schedule", "/user-agent",
        "/sessions", "/sessions/links", "/sessions/current", "/sessions/current/end",
    }  # fmt: skip


def hub_document(hub: HubContext) -> dict:
    door = make_app(hub)
    return door._app.openapi()  # type: ignore[attr-defined]


@pytest.mark.incident("I-30")
async def test_two_people_never_see_each_others_threads_messages_or_events(
    hub: HubContext, ada: httpx.AsyncClient, bob: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    await hub.agents.pause("annabelle", "not now")
    said = (await ada.post("/message", json={"text": "my secret plan", "senderId": "owner"})).json()
    message, thread = said["messageId"], said["threadId"]
    assert (await ada.get(f"/messages/{message}")).status_code == 200
    stored = await hub.storage.database.read(lambda conn: messages.load_message(conn, message))
    assert (stored.user_id, stored.sender_id) == ("ada", "ada")
    for other in (bob, owner):
        assert (await other.get("/threads")).json()["threads"] == []
        places = (f"/messages/{message}", f"/messages/{message}/events", f"/threads/{thread}/messages")
        histories = (f"/threads/{thread}/histories", f"/threads/{thread}/histories/{message}")
        for path in (*places, *histories, f"/threads/{thread}/histories/current", f"/threads/{thread}/events"):
            assert (await other.get(path)).status_code == 404, path
        assert (await other.post(f"/messages/{message}/cancel")).status_code == 404
        assert (await other.post(f"/threads/{thread}/clear")).status_code == 404
        for what in ("retry", "dismiss"):
            assert (await other.post(f"/threads/{thread}/messages/{said['reply']['id']}/{what}")).status_code == 404
        assert (await other.get("/threads/search", params={"q": "secret plan"})).json()["messages"] == []
        repeated = (await other.post("/message", json={"text": "mine"})).json()
        own = f"/threads/{repeated['threadId']}/messages/{said['reply']['id']}/dismiss"
        assert (await other.post(own)).status_code == 404, "in their own thread, somebody else's error"
        assert repeated["threadId"] != thread
    assert len((await ada.get(f"/threads/{thread}/messages")).json()["messages"]) == 2


@pytest.mark.incident("I-30")
async def test_people_call_memory_and_no_other_server_unless_the_owner_says_so(
    hub: HubContext, home: Home, ada: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    names = {tool["name"] for tool in (await ada.get("/tools/list")).json()["tools"]}
    own = {f"memory_{verb}_skill" for verb in ("store", "get", "update", "delete")} | {"memory_list_skills"}
    assert names == {"memory_list_facts", "memory_backfill_extract_facts", "memory_synthesize_facts", *own}
    called = await ada.post("/tools/call", json={"name": "memory_list_facts"})
    assert called.json()["text"] == "api ada annabelle"
    for name in ("filer_read_file", "memory_import_memory", "get_status", "send_message"):
        refused = await ada.post("/tools/call", json={"name": name})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")
        assert "users.json" in refused.json()["error"]["hint"]
    assert (await ada.post("/tools/call", json={"name": "no_such"})).status_code == 404
    assert (await owner.post("/tools/call", json={"name": "filer_read_file"})).json()["text"] == "api owner annabelle"
    kept = json.loads(home.users_file.read_text())
    kept["users"][0]["allowedTools"] = ["filer_*"]
    home.users_file.write_text(json.dumps(kept))
    hub.security.users.reload_if_changed()
    assert (await ada.post("/tools/call", json={"name": "filer_read_file"})).json()["text"] == "api ada annabelle"


@pytest.mark.incident("I-30")
async def test_an_agent_may_do_for_a_person_no_more_than_they_may_themselves(hub: HubContext, home: Home) -> None:
    add_user(home.users_file, "ada")

    async def turn_of(user: str) -> str:
        inbound = InboundMessage(channel="api", chat_id="main", sender_id=user, user_id=user, text="hello")

        def enter(conn) -> str:
            thread = threads.find_or_create_thread(
                conn, channel="api", chat_id="main", user_id=user, agent_id="annabelle"
            )
            messages.queue_message(conn, thread, inbound, QueueLimits())
            return claims.claim_next_messages(conn, "hub", 8, thread.id)[0].message_id

        return await hub.storage.database.write(enter)

    async with client(hub, hub.security.identities.admit("annabelle")) as agent:

        async def status(name: str, message_id: str) -> int:
            call = {"name": name, "message_id": message_id, "arguments": {}}
            return (await agent.post("/tools/call", json=call)).status_code

        ours, theirs = await turn_of("owner"), await turn_of("ada")
        for name in ("filer_read_file", "get_status", "memory_list_facts", "get_tool_catalog"):
            assert await status(name, ours) == 200
        assert await status("memory_list_facts", theirs) == 200
        assert await status("get_tool_catalog", theirs) == 200
        for name in ("filer_read_file", "get_status", "memory_import_memory"):
            assert await status(name, theirs) == 403


@pytest.mark.incident("I-30")
async def test_an_agents_token_opens_no_tool_that_is_for_people_or_for_the_hub(hub: HubContext) -> None:
    made = [NativeTool(f"for_{who}", "x", _ANY, _echo, _READS, audience=who) for who in ("people", "hub")]  # type: ignore[arg-type]
    hub.toolbox.add_native(made)
    inbound = InboundMessage(channel="api", chat_id="main", sender_id="owner", user_id="owner", text="hello")

    def enter(conn) -> str:
        thread = threads.find_or_create_thread(
            conn, channel="api", chat_id="main", user_id="owner", agent_id="annabelle"
        )
        messages.queue_message(conn, thread, inbound, QueueLimits())
        return claims.claim_next_messages(conn, "hub", 8, thread.id)[0].message_id

    turn = await hub.storage.database.write(enter)
    async with client(hub, hub.security.identities.admit("annabelle")) as agent:
        listed = {tool["name"] for tool in (await agent.get("/tools/list")).json()["tools"]}
        assert "memory_list_facts" in listed
        assert not {"for_people", "for_hub"} & listed
        for name in ("for_people", "for_hub"):
            call = {"name": name, "message_id": turn, "arguments": {}}
            for headers in ({}, {"X-Annabelle-Client": "cli"}):
                refused = await agent.post("/tools/call", json=call, headers=headers)
                assert refused.status_code in (403, 404), (name, refused.text)


@pytest.mark.incident("I-30")
async def test_the_terminal_is_named_and_may_no_more_than_others(hub: HubContext, ada: httpx.AsyncClient) -> None:
    named = {"X-Annabelle-Client": "cli"}
    called = await ada.post("/tools/call", json={"name": "memory_list_facts"}, headers=named)
    assert called.json()["text"] == "cli ada annabelle"
    for name in ("filer_read_file", "memory_import_memory"):
        assert (await ada.post("/tools/call", json={"name": name}, headers=named)).status_code == 403


@pytest.mark.incident("I-18", "I-30")
@pytest.mark.parametrize(
    "bad",
    [
        "{", "[]", '{"users":[{"id":"ada"}]}', '{"users":1}', '{"people":[]}', "\xff", "[" * 100_000,
        '{"users":[{"id":"owner","tokenSha256":"' + "a" * 64 + '","createdAt":"2026-01-01T00:00:00Z"}]}',
        '{"users":[{"id":"../x","tokenSha256":"' + "a" * 64 + '","createdAt":"2026-01-01T00:00:00Z"}]}',
    ],
)  # fmt: skip
async def test_a_bad_file_leaves_the_last_good_one_in_force_and_is_told(
    hub: HubContext, home: Home, ada: httpx.AsyncClient, bad: str
) -> None:
    assert (await ada.get("/threads")).status_code == 200
    home.users_file.write_bytes(bad.encode("latin-1"))
    hub.security.users.reload_if_changed()
    assert (await ada.get("/threads")).status_code == 200
    (notice,) = [notice for notice in hub.base.notices.all() if notice.topic == "users_config"]
    assert "users.json" in notice.text
    home.users_file.write_text('{"users": []}')
    hub.security.users.reload_if_changed()
    assert (await ada.get("/threads")).status_code == 401
    assert not [notice for notice in hub.base.notices.all() if notice.topic == "users_config"]


@pytest.mark.incident("I-30")
def test_one_token_or_name_belongs_to_one_person(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    token = add_user(path, "ada")
    assert read_users(path).users[0].token_sha256 == hash_token(token.encode())
    twice = json.loads(path.read_text())
    twice["users"] *= 2
    path.write_text(json.dumps(twice))
    with pytest.raises(Exception, match="named twice"):
        read_users(path)
    twice["users"][1] = {**twice["users"][1], "id": "bob"}
    path.write_text(json.dumps(twice))
    with pytest.raises(Exception, match="two people"):
        read_users(path)
    if os.geteuid() != 0:
        path.chmod(0)
        with pytest.raises(Exception, match="can not be read"):
            read_users(path)
