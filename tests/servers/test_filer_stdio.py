"""The filer as a real process, spoken to with the official client."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import anyio
import pytest

import annabelle.servers.filer
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.servers.filer.__main__ import main
from servers.speaking import Connect
from support.timing import seconds
from support.warm_process import TEMPLATE, WarmProcess

FILER = ("-m", "annabelle.servers.filer")

CATALOGUE = {
    "create_file": ({"path", "content"}, {"overwrite": False}),
    "read_file": ({"path"}, {}),
    "list_files": (set(), {"path": ".", "recursive": False}),
    "update_file": ({"path", "content"}, {"create_backup": True}),
    "delete_file": ({"path"}, {}),
    "move_file": ({"source", "destination"}, {}),
    "copy_file": ({"source", "destination"}, {}),
    "search_files": ({"query"}, {"search_in": "workspace", "search_type": "filename", "file_types": None}),
    "check_grant": ({"path"}, {}),
    "request_grant": ({"path", "permission", "reason"}, {}),
    "list_grants": (set(), {}),
    "get_workspace_info": (set(), {}),
    "get_audit_log": (set(), {"path_filter": None, "operation_filter": None, "date_from": None, "limit": 100}),
}
CHANGES = {"create_file", "update_file", "delete_file", "move_file", "copy_file"}
DESTROYS = {"update_file", "delete_file", "move_file"}


@pytest.mark.req("SRV-FIL", "SRV-ALL")
async def test_the_thirteen_tools_are_as_the_catalogue_has_them(as_process: Connect) -> None:
    async with as_process(*FILER) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == CATALOGUE.keys()
    for name, (required, optional) in CATALOGUE.items():
        schema = tools[name].input_schema
        properties = schema["properties"]
        assert set(schema.get("required", [])) == required, name
        assert {key: value.get("default") for key, value in properties.items() if key not in required} == optional
        assert all(value["description"] for value in properties.values())
    assert set(tools["request_grant"].input_schema["properties"]["permission"]["enum"]) == {"read", "read-write"}


@pytest.mark.req("SRV-ALL")
async def test_every_tool_declares_what_it_may_do(as_process: Connect) -> None:
    async with as_process(*FILER) as client:
        tools = (await client.list_tools()).tools
    for tool in tools:
        hints = tool.annotations
        assert hints is not None
        assert hints.read_only_hint is (tool.name not in CHANGES)
        assert hints.destructive_hint is (tool.name in DESTROYS)
        assert hints.idempotent_hint is (tool.name not in {"delete_file", "move_file"})
        assert hints.open_world_hint is False
        assert tool.description
        assert tool.output_schema


@pytest.mark.req("SRV-FIL")
async def test_files_go_in_and_out_over_the_protocol(as_process: Connect, home: Home) -> None:
    meta = {"annabelle": {"agent_id": "annabelle", "user_id": "owner", "trace_id": new_id("tr")}}
    async with as_process(*FILER) as client:
        made = await client.call_tool("create_file", {"path": "Notes/a.txt", "content": "grüße"}, meta=meta)
        read = await client.call_tool("read_file", {"path": "Notes/a.txt"})
        refused = await client.call_tool("read_file", {"path": "/etc/passwd"})
        log = await client.call_tool("get_audit_log", {})
    assert made.structured_content["outcome"] == "created"
    assert read.content[0].text == "grüße"
    assert refused.is_error
    assert refused.structured_content["error"]["code"] == "not_allowed"
    last = log.structured_content["entries"][-1]
    assert (last["agent"], last["user"], last["trace"]) == ("annabelle", "owner", meta["annabelle"]["trace_id"])
    assert (home.workspace / "Notes/a.txt").read_text() == "grüße"


@pytest.mark.req("SRV-FIL")
async def test_two_filers_at_once_create_a_file_once(as_process: Connect, home: Home) -> None:
    outcomes: list[str] = []
    async with as_process(*FILER) as one, as_process(*FILER) as other:

        async def create(client: object, text: str) -> None:
            result = await client.call_tool("create_file", {"path": "a.txt", "content": text})  # pyright: ignore
            outcomes.append("refused" if result.is_error else result.structured_content["outcome"])

        async with anyio.create_task_group() as tg:
            for number in range(10):
                tg.start_soon(create, (one, other)[number % 2], str(number) * 1000)
    assert sorted(outcomes) == ["created", *["refused"] * 9]


@pytest.mark.req("SRV-ALL")
async def test_a_cancelled_search_ends_and_is_in_the_log(as_process: Connect, home: Home) -> None:
    many = home.workspace / "many"
    for number in range(40):
        (many / str(number)).mkdir(parents=True)
        for inner in range(50):
            (many / str(number) / f"{inner}.txt").write_text("text " * 10_000)
    progressed = anyio.Event()

    async def note(done: float, total: float | None, message: str | None) -> None:
        progressed.set()

    async with as_process(*FILER) as client:
        async with anyio.create_task_group() as tg:
            search = {"query": "not there", "search_type": "content"}
            tg.start_soon(lambda: client.call_tool("search_files", search, progress_callback=note))
            with anyio.fail_after(30):
                await progressed.wait()
            tg.cancel_scope.cancel()
        with anyio.fail_after(10):
            log = await client.call_tool("get_audit_log", {"operation_filter": "search_files"})
    assert [entry["path"] for entry in log.structured_content["entries"]] == ["workspace: not there"]


def rpc(number: int, path: str, content: str) -> bytes:
    params = {"name": "update_file", "arguments": {"path": path, "content": content}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


HELLO = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"t","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)


@contextmanager
def forked_filer() -> Generator[tuple[WarmProcess, IO[bytes], IO[bytes]]]:
    """A filer, its input and its output. It has ended afterwards, killed or because nobody speaks to it any more."""
    process, to_filer, from_filer = TEMPLATE.fork_with_pipes("annabelle.servers.filer.__main__", os.environ)
    with from_filer:
        with to_filer:
            yield process, to_filer, from_filer
        process.wait(seconds(30))


@contextmanager
def kill_at_next_file(process: WarmProcess, folder: Path) -> Generator[None]:
    """It is killed as soon as there is one more file in the folder."""
    before = signal.signal(signal.SIGIO, lambda number, frame: process.kill())
    watched = os.open(folder, os.O_RDONLY)
    try:
        fcntl.fcntl(watched, fcntl.F_NOTIFY, fcntl.DN_CREATE)
        yield
    finally:
        os.close(watched)
        signal.signal(signal.SIGIO, before)


@pytest.mark.req("SRV-FIL")
def test_a_kill_in_the_middle_of_a_write_leaves_the_old_or_the_new_file(home: Home) -> None:
    size = 3_000_000
    temp = home.workspace / "temp"
    temp.mkdir(parents=True)
    target = home.workspace / "a.txt"
    target.write_text("0" * size)
    dice = random.Random(7)
    unfinished = rounds = 0

    def parts() -> list[Path]:
        return [*temp.glob(".part-*")]

    while rounds < 4 or (not unfinished and rounds < 40):
        rounds += 1
        with forked_filer() as (process, to_filer, from_filer):
            to_filer.write(HELLO)
            to_filer.flush()
            from_filer.readline()
            asked = [rpc(number, "a.txt", str(number) * size) for number in range(1, 1 + dice.randrange(1, 4))]
            to_filer.write(b"".join(asked).removesuffix(b"\n"))
            to_filer.flush()
            # The kill comes as soon as a part is being written; the write may be over when it arrives.
            with kill_at_next_file(process, temp), contextlib.suppress(BrokenPipeError):
                os.write(to_filer.fileno(), b"\n")
                [from_filer.readline() for _ in asked]
            process.kill()
        text = target.read_text()
        assert len(text) == size
        assert len(set(text)) == 1
        unfinished += bool(parts())
    assert unfinished, "at least one kill hit a write"
    with forked_filer() as (_, to_filer, from_filer):
        to_filer.write(HELLO + rpc(1, "a.txt", "x"))
        to_filer.flush()
        answers = [json.loads(from_filer.readline()) for _ in range(2)]
    assert not answers[1]["result"]["isError"]
    assert target.read_text() == "x"
    assert not parts(), "what was left unfinished is cleaned up"


@pytest.mark.req("EXT-01")
def test_the_manifest_says_what_the_toolbox_needs() -> None:
    manifest = tomllib.loads((Path(annabelle.servers.filer.__file__).parent / "manifest.toml").read_text())
    assert manifest["name"] == "filer"
    assert manifest["transport"] == "stdio"
    assert callable(main), "what the fork server calls"
    assert "role" not in manifest, "it is neither guardian nor channel"
    assert "timeout" not in manifest, "TOOL_TIMEOUT_SECONDS holds"
    assert manifest["scan"] == {"input": True, "output": True}
    assert {"WORKSPACE_PATH", "FILER_GRANTS_PATH", "ANNABELLE_HOME"} <= set(manifest["env"])
    assert not any("KEY" in name or "TOKEN" in name for name in manifest["env"]), "the filer needs no secret"


@pytest.mark.req("SRV-ALL")
def test_a_wrong_setting_is_one_sentence_and_an_exit_code(home: Home) -> None:
    environment = {**os.environ, "WORKSPACE_PATH": "/etc/workspace"}
    done = subprocess.run(
        [sys.executable, *FILER], env=environment, capture_output=True, text=True, timeout=seconds(60), input=""
    )
    assert done.returncode == 2
    assert "WORKSPACE_PATH may not be /etc/workspace" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
