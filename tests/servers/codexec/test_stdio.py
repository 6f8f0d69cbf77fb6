"""The code server as a real process, spoken to with the official client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import anyio
import pytest

import annabelle.servers.codexec
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from servers.codexec.calling import come, gone
from servers.speaking import Connect

CODEXEC = ("-m", "annabelle.servers.codexec")

WORKING = {"timeout_ms": None, "working_dir": None}
KEPT = {"tags": None, "packages": None}
CATALOGUE = {
    "execute_code": ({"language", "code"}, WORKING),
    "start_session": ({"language"}, {"name": None, "working_dir": None}),
    "send_to_session": ({"code"}, {"session_id": None, "language": None, "timeout_ms": None}),
    "close_session": ({"session_id"}, {}),
    "list_sessions": (set(), {}),
    "install_package": ({"language", "package"}, {"session_id": None}),
    "save_script": ({"name", "description", "language", "code"}, KEPT),
    "get_script": ({"name"}, {}),
    "list_scripts": (set(), {"language": None, "tag": None, "page_token": None}),
    "search_scripts": ({"query"}, {"page_token": None}),
    "run_script": ({"name"}, {"args": None, **WORKING}),
    "save_and_run_script": ({"name", "description", "language", "code"}, {**KEPT, "args": None, **WORKING}),
    "delete_script": ({"name"}, {}),
    "calculate": ({"code"}, {}),
    "readiness": (set(), {}),
}
READS = {"list_sessions", "get_script", "list_scripts", "search_scripts", "calculate", "readiness"}
DESTROYS = {"execute_code", "send_to_session", "close_session", "run_script", "save_and_run_script", "delete_script"}
REPEATABLE = READS | {"close_session", "install_package", "save_script"}
OUTSIDE = {"execute_code", "send_to_session", "install_package", "run_script", "save_and_run_script"}


@pytest.mark.req("SRV-EXE", "SRV-ALL")
async def test_the_tools_are_as_the_catalogue_has_them(as_process: Connect) -> None:
    async with as_process(*CODEXEC) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == CATALOGUE.keys()
    for name, (required, optional) in CATALOGUE.items():
        schema, hints = tools[name].input_schema, tools[name].annotations
        properties = schema["properties"]
        assert set(schema.get("required", [])) == required, name
        assert {key: value.get("default") for key, value in properties.items() if key not in required} == optional
        assert all(value["description"] for value in properties.values())
        assert hints is not None
        assert hints.read_only_hint is (name in READS)
        assert hints.destructive_hint is (name in DESTROYS)
        assert hints.idempotent_hint is (name in REPEATABLE)
        assert hints.open_world_hint is (name in OUTSIDE)
    assert tools["execute_code"].input_schema["properties"]["language"]["enum"] == ["python", "node", "bash"]


@pytest.mark.req("SRV-EXE")
async def test_code_runs_and_sessions_live_over_the_protocol(as_process: Connect, home: Home) -> None:
    async with as_process(*CODEXEC, BRAVE_API_KEY="sesame") as client:
        ran = await client.call_tool("execute_code", {"language": "bash", "code": "env; echo done"})
        opened = await client.call_tool("start_session", {"language": "python"})
        session = {"session_id": opened.structured_content["session_id"]}
        await client.call_tool("send_to_session", {**session, "code": "x = 20"})
        sent = await client.call_tool("send_to_session", {**session, "code": "x * 2 + 2"})
        refused = await client.call_tool("execute_code", {"language": "bash", "code": "ls", "working_dir": "/etc"})
        counted = await client.call_tool("calculate", {"code": "sum(range(10))"})
    assert "done" in ran.content[0].text
    assert "sesame" not in ran.content[0].text
    assert sent.content[0].text == "=> 42"
    assert refused.structured_content["error"]["code"] == "not_allowed"
    assert counted.content[0].text == "45"
    assert gone("/code/session.py", home), "sessions end with the server"
    assert os.listdir(home.data / "codexec/runs") == []


@pytest.mark.req("SRV-ALL")
async def test_a_call_cancelled_by_the_client_ends_its_code(as_process: Connect) -> None:
    async with as_process(*CODEXEC) as client:
        async with anyio.create_task_group() as tg:
            tg.start_soon(client.call_tool, "execute_code", {"language": "bash", "code": "sleep 137.036"})
            assert await anyio.to_thread.run_sync(come, "137.036")
            tg.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(gone, "137.036")
        again = await client.call_tool("execute_code", {"language": "bash", "code": "echo alive"})
    assert again.content[0].text == "alive"


def rpc(number: int, name: str, arguments: dict[str, object]) -> bytes:
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


HELLO = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"t","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)


@pytest.mark.req("SRV-EXE")
def test_nothing_survives_a_server_that_is_killed(home: Home) -> None:
    with subprocess.Popen([sys.executable, *CODEXEC], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        code = "setsid sleep 96485.33 & sleep 96485.33"
        process.stdin.write(HELLO + rpc(1, "execute_code", {"language": "bash", "code": code}))
        process.stdin.write(
            rpc(2, "send_to_session", {"language": "python", "code": "import os; os.system('sleep 96485.33')"})
        )
        process.stdin.flush()
        assert come("96485.33")
        assert come("/code/session.py", home)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert gone("96485.33")
    assert gone("/code/session.py", home)


@pytest.mark.req("EXT-01")
def test_the_manifest_asks_for_exactly_its_own_settings() -> None:
    manifest = tomllib.loads((Path(annabelle.servers.codexec.__file__).parent / "manifest.toml").read_text())
    own = {name.upper() for name in Settings.model_fields if name.startswith("codexec_")}
    assert own <= set(manifest["env"])
    assert {"WORKSPACE_PATH", "FILER_GRANTS_PATH", "AUDIT_LOG_PATH", "TEMP_CLEANUP_DAYS"} <= set(manifest["env"])
    assert not any("KEY" in name or "TOKEN" in name or "SECRET" in name for name in manifest["env"])
    longest = Settings.model_fields["codexec_max_timeout_ms"].default / 1000
    assert manifest["timeout"] > longest, "the hub waits longer than code may run"
