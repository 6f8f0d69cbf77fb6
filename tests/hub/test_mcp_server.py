"""The hub as an MCP server over HTTP, with the real client of the SDK (API-07)."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from annabelle.core.contract import TurnBrief, TurnResult
from annabelle.core.home import Home
from annabelle.hub.mcp import own_tools
from annabelle.hub.mcp.own_tools import McpCaller, OwnTools
from hub.approvals.house import a_house
from hub.hubs import HubProcess, wait_for
from support.scripted_model import Reply, Rule, ScriptedServer
from support.timing import seconds

pytestmark = pytest.mark.req("API-07")
ERAS = ("legacy", "auto")
Era = Literal["legacy", "auto"]
TESTS = Path(__file__).parents[1]


@asynccontextmanager
async def connect(
    hub: HubProcess, token: str | None = None, mode: Era = "auto", **more: object
) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token or hub.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=seconds(60), trust_env=False) as http,
        Client(streamable_http_client(f"{hub.url}/mcp", http_client=http), mode=mode, cache=None, **more) as client,  # type: ignore[arg-type]
    ):
        yield client


@pytest.fixture(scope="module")
def hub(shared_hub: HubProcess) -> HubProcess:
    return shared_hub


def token(hub: HubProcess, name: str, kind: str = "agent", **more: object) -> str:
    made = hub.http.post("/tokens", json={"name": name, "kind": kind, **more})
    assert made.status_code == 200, made.text
    return str(made.json()["secret"])


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def write_file(hub: HubProcess, name: str) -> Path:
    call = {"name": "filer_create_file", "arguments": {"path": name, "content": "x"}}
    assert hub.http.post("/tools/call", json=call).json()["is_error"] is False
    return hub.home.root / "workspace" / name


def question(hub: HubProcess, tool: str) -> str | None:
    pending = hub.http.get("/approvals", params={"state": "pending"}).json()["approvals"]
    return next((str(one["id"]) for one in pending if one["tool"] == tool), None)


@pytest.mark.parametrize("era", ERAS)
async def test_the_tools_have_the_names_of_the_api_and_answer(hub: HubProcess, era: Era) -> None:
    async with connect(hub, mode=era) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"chat", "check_status", "check_notifications"} <= set(listed)
        api = {tool["name"] for tool in hub.http.get("/tools/list").json()["tools"]}
        assert set(listed) - {"chat", "check_status", "check_notifications"} <= api
        assert "filer_list_grants" in listed
        assert "spawn_subagent" not in listed, "as for any agent from outside"
        hints = listed["filer_list_grants"].annotations
        assert hints is not None
        assert hints.read_only_hint is True
        answer = await client.call_tool("filer_list_grants", {})
        assert answer.is_error is False
        assert text_of(answer) == "No folder is granted."
        assert "Annabelle" in text_of(await client.call_tool("check_status", {}))


async def test_a_message_is_said_as_an_agent_not_as_the_person(hub: HubProcess) -> None:
    async with connect(hub) as client:
        answer = await client.call_tool("chat", {"message": "Hello there", "chat_id": "greeting"})
    assert answer.is_error is False
    assert "This comes from another agent (agent:mcp), not from the user" in text_of(answer)
    threads = hub.http.get("/threads", params={"limit": 500}).json()["threads"]
    assert ("agent:mcp", "greeting") in {(one["channel"], one["chatId"]) for one in threads}


@pytest.mark.parametrize("kind", ["owner", "agent"])
async def test_a_call_that_needs_a_yes_is_asked_about_and_made_once_it_is_given(hub: HubProcess, kind: str) -> None:
    file = write_file(hub, f"mcp-{kind}.md")
    secret = None if kind == "owner" else token(hub, "asker")
    async with connect(hub, secret) as client:
        calling = asyncio.create_task(client.call_tool("filer_delete_file", {"path": file.name}))
        approval = await asyncio.to_thread(wait_for, lambda: question(hub, "filer_delete_file"), "the question")
        assert file.exists(), "nothing is done before the yes"
        answered = await asyncio.to_thread(hub.http.post, f"/approvals/{approval}", json={"verdict": "approve"})
        assert answered.status_code == 200, answered.text
        result = await calling
    assert result.is_error is False, text_of(result)
    assert not file.exists()


async def test_a_no_is_told_and_nothing_is_done(hub: HubProcess) -> None:
    file = write_file(hub, "mcp-no.md")
    async with connect(hub) as client:
        calling = asyncio.create_task(client.call_tool("filer_delete_file", {"path": file.name}))
        approval = await asyncio.to_thread(wait_for, lambda: question(hub, "filer_delete_file"), "the question")
        await asyncio.to_thread(hub.http.post, f"/approvals/{approval}", json={"verdict": "deny", "note": "I need it."})
        result = await calling
    assert result.is_error is True
    assert "The answer was no" in text_of(result)
    assert file.exists()


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_takes_its_question_back(hub: HubProcess, era: Era) -> None:
    file = write_file(hub, f"mcp-cancelled-{era}.md")
    async with connect(hub, mode=era) as client:
        calling = asyncio.create_task(client.call_tool("filer_delete_file", {"path": file.name}))
        await asyncio.to_thread(wait_for, lambda: question(hub, "filer_delete_file"), "the question")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await asyncio.to_thread(wait_for, lambda: question(hub, "filer_delete_file") is None, "no question any more")
        assert (await client.call_tool("check_status", {})).is_error is False, "the connection goes on"
    assert file.exists()


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_chat_stops_its_turn(hub: HubProcess, model: ScriptedServer, era: Era) -> None:
    model.rules(Rule(match="hang on", reply=Reply(hang=True)))
    try:
        async with connect(hub, mode=era) as client:
            chat = f"cancelled-{era}"
            calling = asyncio.create_task(client.call_tool("chat", {"message": "hang on", "chat_id": chat}))

            def states() -> list[str]:
                threads = hub.http.get("/threads", params={"limit": 500}).json()["threads"]
                found = [one["id"] for one in threads if one["chatId"] == chat]
                listed = hub.http.get(f"/threads/{found[0]}/messages").json()["messages"] if found else []
                return [line["state"] for line in listed]

            await asyncio.to_thread(wait_for, lambda: states() == ["running"], "a running turn")
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await asyncio.to_thread(wait_for, lambda: states()[:1] == ["failed"], "a stopped turn")
    finally:
        model.rules()


async def test_a_wrong_token_gets_nothing(hub: HubProcess) -> None:
    answer = hub.http.post("/mcp", json={}, headers={"X-Annabelle-Token": "wrong-token-of-somebody"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
    with pytest.raises(BaseExceptionGroup):
        async with connect(hub, "wrong-token-of-somebody"):
            raise AssertionError("nobody gets in with a wrong token")


async def test_a_session_belongs_to_the_token_that_opened_it(hub: HubProcess) -> None:
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    headers = {"Accept": "application/json, text/event-stream"}
    session = hub.http.post("/mcp", json=opening, headers=headers).headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    stolen = headers | {"mcp-session-id": session, "X-Annabelle-Token": token(hub, "thief")}
    assert hub.http.post("/mcp", json=listing, headers=stolen).status_code == 404
    assert hub.http.post("/mcp", json=listing, headers=headers | {"mcp-session-id": session}).status_code == 200


BAD: dict[str, tuple[str, dict[str, object], str]] = {
    "an unknown tool": ("filer_fly", {}, "no tool"),
    "a wrong type": ("filer_read_file", {"path": 7}, "path"),
    "an argument nobody knows": ("filer_list_grants", {"nobody": "knows"}, "nobody"),
    "an approval of its own": ("filer_delete_file", {"path": "x", "approved": True}, "approved"),
    "no words": ("chat", {"message": " "}, "nothing in it but spaces"),
    "a chat name with a line feed": ("chat", {"message": "Hi", "chat_id": "a\nb"}, "chat_id is not valid"),
    "an odd position": ("check_notifications", {"after": "now"}, "after"),
    "a tool only for people": ("memory_restore_backup", {}, ""),
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_a_bad_call_is_answered_with_a_sentence(
    hub: HubProcess, bad: tuple[str, dict[str, object], str], era: Era
) -> None:
    name, arguments, words = bad
    async with connect(hub, mode=era) as client:
        answer = await client.session.call_tool(name, arguments)
        assert isinstance(answer, types.CallToolResult)
        assert answer.is_error is True
        assert words in text_of(answer)
        assert (await client.call_tool("filer_list_grants", {})).is_error is False


async def test_arguments_that_are_too_large_are_refused_and_the_client_goes_on(hub: HubProcess) -> None:
    async with connect(hub) as client:
        with pytest.raises(MCPError):
            await client.call_tool("chat", {"message": "x" * 30_000_000})
        assert (await client.call_tool("check_status", {})).is_error is False


async def test_ten_clients_at_once_each_get_their_own_answers(hub: HubProcess) -> None:
    async def use(number: int) -> list[str]:
        async with connect(hub, mode=ERAS[number % 2]) as client:
            plan = json.dumps({"say": f"number {number}"})
            said = await client.call_tool("chat", {"message": plan, "chat_id": f"crowd-{number}"})
            listed = await client.call_tool("filer_list_grants", {})
            return [text_of(said), str(listed.is_error)]

    answers = await asyncio.gather(*(use(number) for number in range(10)))
    assert answers == [[f"number {number}", "False"] for number in range(10)]


async def test_the_logs_are_for_the_owner_alone_and_masked(hub: HubProcess) -> None:
    async with connect(hub) as client:
        found = {str(one.uri) for one in (await client.list_resources()).resources}
        assert "annabelle://logs/hub" in found
        (content,) = (await client.read_resource("annabelle://logs/hub")).contents
        assert isinstance(content, types.TextResourceContents)
        assert "The hub is ready" in content.text
        assert hub.token not in content.text
        for bad in ("annabelle://logs/../annabelle.token", "annabelle://logs/nothing", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(bad)
    for secret in (token(hub, "nosy"), token(hub, "small", "device", scopes=["talk", "tools"])):
        async with connect(hub, secret) as client:
            assert (await client.list_resources()).resources == []
            with pytest.raises(MCPError, match="Only the owner"):
                await client.read_resource("annabelle://logs/hub")


async def test_a_token_without_the_scope_may_not_talk(hub: HubProcess) -> None:
    async with connect(hub, token(hub, "mute", scopes=["tools"])) as client:
        answer = await client.call_tool("chat", {"message": "Hello"})
        assert answer.is_error is True
        assert "no scope talk" in text_of(answer)


async def test_what_was_said_unasked_is_told_once_and_never_to_another_agent(hub: HubProcess) -> None:
    hub.say(
        "Please do it in the background\n"
        + json.dumps(
            {
                "calls": [
                    {
                        "name": "queue_task",
                        "arguments": {
                            "name": "look at the grants",
                            "action": {"type": "tool_call", "toolName": "filer_list_grants", "parameters": {}},
                        },
                    }
                ],
                "say": "It runs.",
            }
        ),
        chatId="background",
    )
    stranger = token(hub, "stranger")
    async with connect(hub) as client, connect(hub, stranger) as other:

        def ended() -> bool:
            tasks = hub.http.get("/tasks").json()["tasks"]
            return any(one["name"] == "look at the grants" and one["state"] == "done" for one in tasks)

        await asyncio.to_thread(wait_for, ended, "the end of the task")
        assert "look at the grants" in text_of(await client.call_tool("check_notifications", {"after": 0}))
        assert "look at the grants" not in text_of(await client.call_tool("check_notifications", {}))
        assert "look at the grants" not in text_of(await other.call_tool("check_notifications", {"after": 0}))


async def test_an_answer_that_takes_longer_than_a_client_waits_is_told_later_and_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_tools, "WAIT_SECONDS", 0.1)
    async with a_house(home) as house:
        identities, released = house.hub.security.identities, asyncio.Event()
        caller = McpCaller.from_identity(identities.identify(home.token_file.read_bytes().strip()))
        tools, turn = OwnTools(house.hub), house.thinker._turn

        async def take_long(brief: TurnBrief) -> TurnResult:
            await released.wait()
            return await turn(brief)

        monkeypatch.setattr(house.thinker, "_turn", take_long)
        assert "still at it" in (await tools.chat(caller, {"message": "Hello"})).text
        assert "You said: " not in (await tools.check_notifications(caller, {})).text
        released.set()
        await house.hub.conversations.turns.wait_all_over(seconds(20))
        assert "You said: " in (await tools.check_notifications(caller, {})).text
        assert "You said: " not in (await tools.check_notifications(caller, {})).text


async def test_a_change_of_the_tools_is_told_to_old_and_new_clients(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub().start()
    echo = {"command": sys.executable, "args": ["-m", "support.servers.echo"], "env": {"PYTHONPATH": str(TESTS)}}
    heard = asyncio.Event()

    async def on_message(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    async with (
        connect(hub, mode="legacy", message_handler=on_message) as old,
        connect(hub) as new,
        new.listen(tools_list_changed=True) as changes,
    ):
        await old.list_tools()
        capabilities = old.server_capabilities.tools
        assert capabilities is not None
        assert capabilities.list_changed is True
        (hub.home.config / "external-mcps.json").write_text(json.dumps({"mcpServers": {"later": echo}}))
        async with asyncio.timeout(seconds(40)):
            await anext(aiter(changes))
            await heard.wait()
