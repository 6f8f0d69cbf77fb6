"""A server made of the kit as a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError

from annabelle.core.failpoints import VARIABLE
from annabelle.core.home import Home
from annabelle.servers.kit.server import FAILPOINTS
from servers.speaking import SAMPLE, Connect
from support.timing import seconds
from support.warm_process import TEMPLATE

SAMPLE_SERVER = "servers.sample_server"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


async def wait_for(path: Path) -> None:
    with anyio.fail_after(20):
        while not await anyio.Path(path).exists():  # noqa: ASYNC110  another process makes it
            await anyio.sleep(0.01)


class Sample:
    """A forked sample server, and the ends of its streams that its client has."""

    def __init__(self, failpoints: str = "") -> None:
        self._errors = os.fdopen(os.memfd_create("errors"), "w+b")
        environment = {**os.environ, VARIABLE: failpoints}
        self._process, self._to, self._out = TEMPLATE.fork_with_pipes(
            SAMPLE_SERVER, environment, errors=self._errors.fileno()
        )

    def say(self, *frames: bytes) -> None:
        for frame in frames:
            self._to.write(frame + b"\n")
        self._to.flush()

    def ask(self, *frames: bytes) -> dict[str, Any]:
        """Write frames, and read one answer."""
        self.say(*frames)
        return json.loads(self._out.readline())

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def finish(self) -> tuple[int, bytes, bytes]:
        """Hang up: its exit code, and what is left on its output and its errors."""
        self._to.close()
        with self._out, self._errors:
            code = self._process.wait(seconds(30))
            self._errors.seek(0)
            return code, self._out.read(), self._errors.read()


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
    sample = Sample()
    sample.ask(json.dumps(INITIALIZE).encode())
    call = {"name": "work_until_stopped", "arguments": {"folder": str(tmp_path)}}
    sample.say(INITIALIZED, json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}).encode())
    await wait_for(tmp_path / "begun")
    assert sample.finish()[0] == 0
    assert (tmp_path / "stopped").exists()


def test_garbage_is_passed_over(home: Home) -> None:
    sample = Sample()
    garbage = [b"not json", b"\xff\xfe\x00", b"{}", b"[" * 50_000, b'"text"', b""]
    answer = sample.ask(*garbage, json.dumps(INITIALIZE).encode())
    assert answer["id"] == 1
    assert sample.finish()[0] == 0


@pytest.mark.parametrize("broken", [rb'"\ud800"', b'"\xff"'])
def test_a_request_with_half_a_character_is_answered(home: Home, broken: bytes) -> None:
    sample = Sample()
    answer = sample.ask(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":' + broken + b"}}")
    sample.finish()
    assert answer["id"] == 7
    assert "not valid JSON-RPC" in answer["error"]["message"]


def test_a_file_instead_of_a_pipe_is_served_too(home: Home, tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    requests.write_text(json.dumps(INITIALIZE) + "\n")
    with requests.open("rb") as file, (tmp_path / "answers.jsonl").open("w+b") as answers:
        TEMPLATE.fork(SAMPLE_SERVER, os.environ, [file.fileno(), answers.fileno(), 2]).wait(seconds(30))
        answers.seek(0)
        assert json.loads(answers.readline())["id"] == 1


def test_ctrl_c_ends_it_without_a_traceback(home: Home) -> None:
    sample = Sample()
    sample.ask(json.dumps(INITIALIZE).encode())
    sample.interrupt()
    _, _, errors = sample.finish()
    assert b"Traceback" not in errors


@pytest.mark.parametrize("point", FAILPOINTS)
def test_a_failpoint_kills_around_the_tool(home: Home, tmp_path: Path, point: str) -> None:
    sample = Sample(failpoints=str(tmp_path))
    sample.ask(json.dumps(INITIALIZE).encode())
    (tmp_path / point).touch()
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
    sample.say(INITIALIZED, json.dumps(call).encode())
    code, output, _ = sample.finish()
    assert code == -signal.SIGKILL
    assert output == b"", "the answer was never sent"


def test_a_server_loads_no_web_framework_and_no_client(home: Home) -> None:
    code = (
        "import sys; import annabelle.servers.filer.server;"
        "unwanted = {'starlette', 'uvicorn', 'httpx2', 'jsonschema', 'mcp.client'};"
        "print(sorted(unwanted & sys.modules.keys()));"
        "from mcp import Client; import mcp; print(mcp.server.Server.__name__, Client.__name__)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=seconds(60)
    ).stdout
    assert output.splitlines() == ["[]", "Server Client"]
