"""Every example of docs/clients.md works against a running hub (UX-03)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import openai
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from annabelle.core.home import Home
from cli.terminal import ANNABELLE, environment
from hub.hubs import HubProcess, wait_for
from support.scripted_model import ScriptedServer
from support.timing import seconds

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
JSON = [json.loads(text) for kind, text in BLOCKS if kind == "json"]
ADDRESS, HOME = "http://127.0.0.1:8010", "~/.annabelle"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    made = HubProcess(Home(tmp_path_factory.mktemp("clients") / "home").prepare(), model.openai_url)
    made.environment = environment(made.home, model.openai_url)
    yield made.start()
    made.end()


def example(hub: HubProcess, kind: str) -> str:
    """The page's only example of a kind, at this hub instead of the usual place."""
    (text,) = [text for found, text in BLOCKS if found == kind]
    assert ADDRESS in text
    return text.replace(ADDRESS, hub.url).replace(HOME, str(hub.home.root))


def run(hub: HubProcess, command: list[str]) -> str:
    ended = subprocess.run(
        command, env=os.environ | hub.environment, capture_output=True, text=True, timeout=seconds(60), check=True
    )
    return ended.stdout


@pytest.mark.req("UX-03", "API-06")
def test_the_curl_example_is_answered(hub: HubProcess) -> None:
    answer = json.loads(run(hub, ["bash", "-c", example(hub, "sh")]))
    assert "What can you do?" in answer["choices"][0]["message"]["content"]


@pytest.mark.req("UX-03", "API-06")
def test_the_python_example_is_answered(hub: HubProcess) -> None:
    assert "What can you do?" in run(hub, [sys.executable, "-c", example(hub, "python")])


@pytest.mark.req("UX-03", "API-06")
def test_open_webuis_settings_lead_to_a_chat_of_their_own(hub: HubProcess) -> None:
    given = dict(line.split("=", 1) for line in example(hub, "env").splitlines())
    assert given["ENABLE_FORWARD_USER_INFO_HEADERS"] == "true"
    secret = hub.http.post("/tokens", json={"name": "webui", "kind": "device"}).json()["secret"]
    headers = {"X-OpenWebUI-Chat-Id": "webui-chat-1", "X-OpenWebUI-User-Id": "u1"}
    with openai.OpenAI(
        base_url=given["OPENAI_API_BASE_URL"], api_key=secret, default_headers=headers, timeout=seconds(60)
    ) as client:
        (model,) = client.models.list()
        client.chat.completions.create(model=model.id, messages=[{"role": "user", "content": "Hello"}])
    threads = hub.http.get("/threads").json()["threads"]
    assert "webui-chat-1" in [one["chatId"] for one in threads]


async def list_names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.req("UX-03", "API-07")
@pytest.mark.parametrize("number", [0, 1], ids=["Claude Desktop", "an editor"])
async def test_a_configured_client_finds_annabelle_on_stdio(hub: HubProcess, tmp_path: Path, number: int) -> None:
    (servers,) = JSON[number].values()
    entry = servers["annabelle"]
    assert entry["command"] == "annabelle"
    secret = hub.http.post("/tokens", json={"name": f"helper{number}", "kind": "agent"}).json()["secret"]
    (tmp_path / "helper.token").write_text(secret)
    command = StdioServerParameters(command=str(ANNABELLE), args=entry["args"], env=hub.environment, cwd=tmp_path)
    async with Client(command, mode="legacy", read_timeout_seconds=seconds(60)) as client:
        assert {"chat", "check_status", "check_notifications"} <= await list_names(client)


@pytest.mark.req("UX-03", "API-07")
async def test_a_configured_client_finds_annabelle_over_http(hub: HubProcess) -> None:
    entry = JSON[2]["mcpServers"]["annabelle"]
    headers = {name: value.replace("TOKEN", hub.token) for name, value in entry["headers"].items()}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=seconds(60), trust_env=False) as http,
        Client(streamable_http_client(entry["url"].replace(ADDRESS, hub.url), http_client=http)) as client,
    ):
        assert "chat" in await list_names(client)


@pytest.mark.req("UX-03")
def test_the_commands_of_the_page_make_tokens(hub: HubProcess) -> None:
    lines = [line.partition("#")[0].split() for line in PAGE.read_text().splitlines() if line.startswith("annabelle ")]
    assert len(lines) == 2
    for words in lines:
        words[words.index("add") + 1] += "-page"
        assert run(hub, [str(ANNABELLE), *words[1:]]).strip()


@pytest.mark.req("HUB-08")
async def test_without_a_thinker_an_mcp_client_has_the_conversations(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub().start()
    hub.say("Hello", chatId="earlier")
    hub.stop()
    hub = make_hub(THINKER_ENABLED="false").start()
    with (
        openai.OpenAI(base_url=f"{hub.url}/v1", api_key=hub.token, max_retries=0) as front_end,
        pytest.raises(openai.InternalServerError, match="left to an MCP client"),
    ):
        front_end.chat.completions.create(model="annabelle", messages=[{"role": "user", "content": "Hi"}])
    call = {"name": "filer_create_file", "arguments": {"path": "there.md", "content": "x"}}
    assert hub.http.post("/tools/call", json=call).json()["is_error"] is False
    secret = hub.http.post("/tokens", json={"name": "desktop", "kind": "agent"}).json()["secret"]
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=seconds(60)) as http,
        Client(streamable_http_client(f"{hub.url}/mcp", http_client=http), cache=None) as client,
    ):
        refused = await client.call_tool("chat", {"message": "Hello"})
        assert refused.is_error is True
        assert "left to an MCP client" in str(refused.content)
        assert "is ready" in str((await client.call_tool("check_status", {})).content)
        assert "there.md" in str((await client.call_tool("filer_list_files", {})).content)
        assert {"send_message", "filer_list_files"} <= await list_names(client)
        words = {"message": "From outside", "channel": "api", "chat_id": "earlier"}
        sending = asyncio.create_task(client.call_tool("send_message", words))

        def question() -> str | None:
            pending = hub.http.get("/approvals", params={"state": "pending"}).json()["approvals"]
            return next((str(one["id"]) for one in pending if one["tool"] == "send_message"), None)

        approval = await asyncio.to_thread(wait_for, question, "the question")
        assert texts_of(hub, "earlier")[0] == "Hello"
        assert "From outside" not in texts_of(hub, "earlier")
        await asyncio.to_thread(hub.http.post, f"/approvals/{approval}", json={"verdict": "approve"})
        assert (await sending).is_error is False
    assert texts_of(hub, "earlier")[-1] == "From outside"


def texts_of(hub: HubProcess, chat: str) -> list[str]:
    threads = hub.http.get("/threads").json()["threads"]
    (thread,) = [one["id"] for one in threads if one["chatId"] == chat]
    return [str(line["text"]) for line in hub.http.get(f"/threads/{thread}/messages").json()["messages"]]
