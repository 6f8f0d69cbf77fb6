"""A server made of the kit as a real process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import MCPError

from annabelle.core.failpoints import VARIABLE
from annabelle.core.home import Home
from annabelle.servers.kit.server import FAILPOINTS
from servers.speaking import SAMPLE, Connect
from support.timing import seconds

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


async def wait_for(path: Path) -> None:
    with anyio.fail_after(20):
        while not await anyio.Path(path).exists():  # noqa: ASYNC110  another process makes it
            await anyio.sleep(0.01)


async def start(*arguments: str, stdin: int = subprocess.PIPE) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


async def ask(process: asyncio.subprocess.Process, *frames: bytes) -> dict[str, object]:
    """Write frames, and read one answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    for frame in frames:
        process.stdin.write(frame + b"\n")
    await process.stdin.drain()
    with anyio.fail_after(30):
        return json.loads(await process.stdout.readline())


async def finish(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """Hang up, and read what is left."""
    if process.stdin is not None:
        process.stdin.close()
    with anyio.fail_after(30):
        return await process.communicate()


@pytest.mark.req("SRV-ALL")
async def test_both_eras_are_served(as_process: Connect) -> None:
    async with as_process(SAMPLE) as client:
        result = await client.call_tool("echo", {"text": "hi"})
    assert result.structured_content == {"said": "hi"}


async def test_prints_and_children_can_not_break_the_protocol(as_process: Connect) -> None:
    async with as_process(SAMPLE) as client:
        result = await client.call_tool("chatter", {})
        again = await client.call_tool("echo", {})
    assert result.structured_content == {"said": "done"}
    assert not again.is_error


@pytest.mark.req("SRV-ALL")
async def test_a_cancelled_call_stops_its_thread(as_process: Connect, tmp_path: Path) -> None:
    async with as_process(SAMPLE) as client:
        async with anyio.create_task_group() as tg:
            tg.start_soon(client.call_tool, "work_until_stopped", {"folder": str(tmp_path)})
            await wait_for(tmp_path / "begun")
            tg.cancel_scope.cancel()
        await wait_for(tmp_path / "stopped")
        result = await client.call_tool("echo", {})
    assert not result.is_error


@pytest.mark.req("SRV-ALL")
async def test_a_timed_out_call_stops_its_thread(as_process: Connect, tmp_path: Path) -> None:
    async with as_process(SAMPLE) as client:
        with pytest.raises(MCPError):
            await client.call_tool("work_until_stopped", {"folder": str(tmp_path)}, read_timeout_seconds=2)
        await wait_for(tmp_path / "stopped")


async def test_the_server_ends_when_the_client_hangs_up_in_the_middle_of_a_call(home: Home, tmp_path: Path) -> None:
    process = await start(SAMPLE)
    await ask(process, json.dumps(INITIALIZE).encode())
    call = {"name": "work_until_stopped", "arguments": {"folder": str(tmp_path)}}
    assert process.stdin is not None
    process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    process.stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}).encode() + b"\n"
    )
    await wait_for(tmp_path / "begun")
    await finish(process)
    assert process.returncode == 0
    assert (tmp_path / "stopped").exists()


async def test_garbage_is_passed_over(home: Home) -> None:
    process = await start(SAMPLE)
    garbage = [b"not json", b"\xff\xfe\x00", b"{}", b"[" * 50_000, b'"text"', b""]
    answer = await ask(process, *garbage, json.dumps(INITIALIZE).encode())
    assert answer["id"] == 1
    await finish(process)
    assert process.returncode == 0


@pytest.mark.parametrize("broken", [rb'"\ud800"', b'"\xff"'])
async def test_a_request_with_half_a_character_is_answered(home: Home, broken: bytes) -> None:
    process = await start(SAMPLE)
    answer = await ask(process, b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":' + broken + b"}}")
    await finish(process)
    assert answer["id"] == 7
    assert "not valid JSON-RPC" in answer["error"]["message"]


async def test_a_file_instead_of_a_pipe_is_served_too(home: Home, tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    requests.write_text(json.dumps(INITIALIZE) + "\n")
    with requests.open("rb") as file:
        process = await start(SAMPLE, stdin=file.fileno())
    output, _ = await finish(process)
    assert json.loads(output.splitlines()[0])["id"] == 1


async def test_ctrl_c_ends_it_without_a_traceback(home: Home) -> None:
    process = await start(SAMPLE)
    await ask(process, json.dumps(INITIALIZE).encode())
    process.send_signal(signal.SIGINT)
    _, errors = await finish(process)
    assert b"Traceback" not in errors


@pytest.mark.parametrize("point", FAILPOINTS)
async def test_a_failpoint_kills_around_the_tool(home: Home, tmp_path: Path, point: str) -> None:
    os.environ[VARIABLE] = str(tmp_path)
    try:
        process = await start(SAMPLE)
    finally:
        del os.environ[VARIABLE]
    await ask(process, json.dumps(INITIALIZE).encode())
    (tmp_path / point).touch()
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
    assert process.stdin is not None
    process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n' + json.dumps(call).encode() + b"\n")
    output, _ = await finish(process)
    assert process.returncode == -signal.SIGKILL
    assert output == b"", "the answer was never sent"


def test_a_server_loads_no_web_framework_and_no_client(home: Home) -> None:
    code = (
        "import sys; import annabelle.servers.filer.server;"
        "unwanted = {'starlette', 'uvicorn', 'httpx', 'httpx2', 'jsonschema', 'mcp.client'};"
        "print(sorted(unwanted & sys.modules.keys()));"
        "from mcp import Client; import mcp; print(mcp.server.Server.__name__, Client.__name__)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=seconds(60)
    ).stdout
    assert output.splitlines() == ["[]", "Server Client"]
