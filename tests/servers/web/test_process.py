"""The browser server as a real process, spoken to with the official client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import psutil
import pytest

import annabelle.servers.web
from annabelle.core.home import Home
from annabelle.servers.web.__main__ import main
from servers.speaking import Connect
from servers.web.pages import Site
from support.timing import seconds

SERVER = ("-m", "annabelle.servers.web")

CATALOGUE = {
    "browser_close": (set(), set()),
    "browser_resize": ({"width", "height"}, set()),
    "browser_console_messages": (set(), {"level", "filename"}),
    "browser_handle_dialog": ({"accept"}, {"promptText"}),
    "browser_evaluate": ({"function"}, {"element", "ref"}),
    "browser_file_upload": (set(), {"paths"}),
    "browser_fill_form": ({"fields"}, set()),
    "browser_install": (set(), set()),
    "browser_press_key": ({"key"}, set()),
    "browser_type": ({"ref", "text"}, {"element", "submit", "slowly"}),
    "browser_navigate": ({"url"}, set()),
    "browser_navigate_back": (set(), set()),
    "browser_network_requests": (set(), {"includeStatic", "filename"}),
    "browser_take_screenshot": (set(), {"type", "filename", "element", "ref", "fullPage"}),
    "browser_snapshot": (set(), {"filename"}),
    "browser_click": ({"ref"}, {"element", "doubleClick", "button", "modifiers"}),
    "browser_drag": ({"startElement", "startRef", "endElement", "endRef"}, set()),
    "browser_hover": ({"ref"}, {"element"}),
    "browser_select_option": ({"ref", "values"}, {"element"}),
    "browser_tabs": ({"action"}, {"index"}),
    "browser_wait_for": (set(), {"time", "text", "textGone"}),
}
READS = {"install", "wait_for"}
# The first four may be saved as a file, so they do not only read.
HARMLESS = {
    "snapshot",
    "read",
    "console_messages",
    "network_requests",
    "navigate",
    "navigate_back",
    "hover",
    "resize",
    "close",
    "tabs",
    "take_screenshot",
}


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_the_tools_are_as_the_catalogue_has_them(as_process: Connect, home: Home) -> None:
    async with as_process(*SERVER) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == CATALOGUE.keys() | {"browser_read", "readiness"}
    assert "browser_run_code" not in tools, "nothing runs in the driver"
    for name, (required, optional) in CATALOGUE.items():
        schema = tools[name].input_schema
        assert set(schema.get("required", [])) == required, name
        assert optional <= schema["properties"].keys() - required, name
    for name, tool in tools.items():
        hints, short = tool.annotations, name.removeprefix("browser_")
        assert hints is not None
        if name != "readiness":
            assert hints.read_only_hint is (short in READS), name
            assert hints.destructive_hint is (short not in READS | HARMLESS), name
            assert hints.open_world_hint is (short not in {"install", "close"}), name
            assert not (hints.idempotent_hint and hints.destructive_hint), name
    assert not (home.data / "browser").exists(), "nothing starts before the first call"


@pytest.mark.req("SRV-BRW")
async def test_a_page_is_opened_and_read_over_the_protocol(as_process: Connect, home: Home, site: Site) -> None:
    site.pages["/"] = "<title>Hello</title><h1>Over the wire</h1>"
    async with as_process(*SERVER, PRIVATE_HOSTS_ALLOWED=f"127.0.0.1:{site.port}") as client:
        meta = {"annabelle": {"agent_id": "anna"}}
        opened = await client.call_tool("browser_navigate", {"url": f"{site.url}/"}, meta=meta)
        shown = await client.call_tool("browser_snapshot", {}, meta=meta)
        refused = await client.call_tool("browser_navigate", {"url": "http://127.0.0.1:1/"}, meta=meta)
    assert opened.structured_content["title"] == "Hello"
    assert 'heading "Over the wire"' in shown.content[0].text
    assert refused.structured_content["error"]["code"] == "not_allowed"
    assert (home.data / "browser" / "anna").is_dir()
    _, alive = await asyncio.to_thread(psutil.wait_procs, _left(home), timeout=seconds(10))
    assert not alive, "the browser ends with the server"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
def test_a_killed_server_leaves_no_browser_behind(home: Home) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "browser_tabs", "arguments": {"action": "list"}},
    }
    frames = [hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call]
    with subprocess.Popen([sys.executable, *SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(frame) + "\n" for frame in frames).encode())
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        browsers = _left(home)
        process.kill()
    assert not answers[1]["result"]["isError"]
    assert browsers
    _gone, alive = psutil.wait_procs(browsers, timeout=seconds(20))
    assert not alive


def _left(home: Home) -> list[psutil.Process]:
    profiles = str(home.data / "browser")
    return [
        one
        for one in psutil.process_iter(["cmdline", "status"])
        if profiles in " ".join(one.info["cmdline"] or []) and one.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.req("EXT-01")
def test_the_manifest_says_what_the_toolbox_needs() -> None:
    manifest = tomllib.loads((Path(annabelle.servers.web.__file__).parent / "manifest.toml").read_text())
    assert manifest["name"] == "web"
    assert callable(main), "what the fork server calls"
    assert {"PRIVATE_HOSTS_ALLOWED", "BROWSER_PATH", "WORKSPACE_PATH"} <= set(manifest["env"])
    assert not any("KEY" in name or "TOKEN" in name for name in manifest["env"]), "the browser needs no secret"
