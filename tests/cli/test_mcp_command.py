"""`annabelle mcp` on standard input and output, with the real client of the SDK (API-07)."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import httpx2 as httpx
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from annabelle.core.home import Home
from cli.terminal import ANNABELLE, run
from hub.hubs import HubProcess, wait_for
from support.forked_stdio import forked_stdio
from support.scripted_model import plan_text
from support.timing import seconds
from support.warm_process import COMMAND, can_fork

pytestmark = pytest.mark.req("API-07")
ERAS = ("legacy", "auto")
Era = Literal["legacy", "auto"]


@asynccontextmanager
async def bridge(known: dict[str, str], *arguments: str, mode: Era = "auto") -> AsyncIterator[Client]:
    """A client of the command, as Claude Desktop or an editor is one."""
    started = StdioServerParameters(command=str(ANNABELLE), args=["mcp", *arguments], env=known)
    server = forked_stdio(COMMAND, known, ["mcp", *arguments]) if can_fork(known) else started
    async with Client(server, mode=mode, cache=None, read_timeout_seconds=seconds(60)) as client:
        yield client


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def http(known: dict[str, str]) -> httpx.Client:
    home = Home(Path(known["ANNABELLE_HOME"]))
    url = json.loads(home.hub_file.read_text())["url"]
    return httpx.Client(base_url=url, headers={"X-Annabelle-Token": home.token_file.read_text().strip()})


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_on_stdio_lists_calls_talks_and_reads_logs(running: dict[str, str], era: Era) -> None:
    async with bridge(running, mode=era) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"chat", "check_status", "check_notifications", "filer_list_grants"} <= names
        assert text_of(await client.call_tool("filer_list_grants", {})) == "No folder is granted."
        assert (
            text_of(await client.call_tool("chat", {"message": plan_text(say="Hello, program.")})) == "Hello, program."
        )
        assert "annabelle://logs/hub" in {str(one.uri) for one in (await client.list_resources()).resources}
        (content,) = (await client.read_resource("annabelle://logs/hub")).contents
        assert isinstance(content, types.TextResourceContents)
        unknown = await client.session.call_tool("fly", {})
        assert isinstance(unknown, types.CallToolResult)
        assert unknown.is_error is True
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("annabelle://logs/nothing")


async def test_a_call_that_needs_a_yes_is_asked_about(running: dict[str, str]) -> None:
    with http(running) as owner:
        made = {"name": "filer_create_file", "arguments": {"path": "bridge.md", "content": "x"}}
        assert owner.post("/tools/call", json=made).json()["is_error"] is False

        def question() -> str | None:
            pending = owner.get("/approvals", params={"state": "pending"}).json()["approvals"]
            return next((str(one["id"]) for one in pending if one["tool"] == "filer_delete_file"), None)

        async with bridge(running) as client:
            calling = asyncio.create_task(client.call_tool("filer_delete_file", {"path": "bridge.md"}))
            approval = await asyncio.to_thread(wait_for, question, "the question")
            answered = await asyncio.to_thread(owner.post, f"/approvals/{approval}", json={"verdict": "approve"})
            assert answered.status_code == 200
            assert (await calling).is_error is False
    assert not (Path(running["ANNABELLE_HOME"]) / "workspace" / "bridge.md").exists()


async def test_another_token_can_be_given_in_a_file(running: dict[str, str], tmp_path: Path) -> None:
    with http(running) as owner:
        secret = owner.post("/tokens", json={"name": "editor", "kind": "agent"}).json()["secret"]
    file = tmp_path / "editor.token"
    file.write_text(f"{secret}\n")
    async with bridge(running, "--token-file", str(file)) as client:
        assert "agent:editor" in text_of(await client.call_tool("chat", {"message": "Who am I?", "chat_id": "who"}))
        assert (await client.list_resources()).resources == []


def test_a_token_file_that_cannot_be_read_is_named(running: dict[str, str], tmp_path: Path) -> None:
    refused = run(running, "mcp", "--token-file", str(tmp_path / "none.token"))
    assert refused.returncode == 2
    assert "none.token" in refused.stderr


@pytest.mark.parametrize("content", [b"wrong\n", b"\xff\xfe"], ids=["wrong", "binary"])
async def test_a_token_that_is_not_known_is_said_to_the_client(
    running: dict[str, str], tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "old.token"
    file.write_bytes(content)
    async with bridge(running, "--token-file", str(file)) as client:
        with pytest.raises(MCPError, match="does not know this token"):
            await client.list_tools()


def test_garbage_on_standard_input_ends_nothing_else(running: dict[str, str]) -> None:
    ended = subprocess.run(
        [ANNABELLE, "mcp"], env=running, input=b"\xff\xfe not json\n{}\n[]\n\n", capture_output=True,
        timeout=seconds(40), check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    for line in ended.stdout.splitlines():
        assert "error" in json.loads(line), "nothing but the protocol on standard output"
    with http(running) as owner:
        assert owner.get("/health").json()["phase"] == "ready"


async def test_where_no_hub_runs_one_is_started_for_as_long_as_it_is_used(known: dict[str, str]) -> None:
    async with bridge(known, mode="legacy") as client:
        assert "is ready" in text_of(await client.call_tool("check_status", {}))
        pid = json.loads((Path(known["ANNABELLE_HOME"]) / "run" / "hub.json").read_text())["pid"]
        os.kill(pid, 0)

    def gone() -> bool:
        return run(known, "status", "--json").returncode == 5

    await asyncio.to_thread(wait_for, gone, "the end of the hub")


async def test_the_hub_may_be_restarted_meanwhile(home: Home, known: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        known = known | {"ANNABELLE_PORT": str(free.getsockname()[1])}
    hub = HubProcess(home)
    hub.environment = known
    hub.start()
    try:
        async with bridge(known, mode="legacy") as client:
            assert (await client.call_tool("check_status", {})).is_error is False
            await asyncio.to_thread(hub.kill)
            with pytest.raises(MCPError, match="Annabelle is not running"):
                await client.call_tool("check_status", {})
            await asyncio.to_thread(hub.start)
            assert (await client.call_tool("check_status", {})).is_error is False
    finally:
        hub.end()
