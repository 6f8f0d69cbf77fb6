"""The server as a real process, spoken to with the official client."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import annabelle.servers.telegram
from annabelle.core.connections import write_connection
from annabelle.core.home import Home
from annabelle.servers.telegram.__main__ import main
from servers.speaking import Connect
from servers.telegram.conftest import account
from support.timing import seconds

TELEGRAM = ("-m", "annabelle.servers.telegram")
DOUBLE = str(Path(__file__).parent / "double_process.py")
TESTS = str(Path(__file__).parents[2])

CATALOGUE = {
    "mark_read": ({"chat_id"}, {"message_id": None}),
    "list_contacts": (set(), {}),
    "send_message": ({"chat_id", "message"}, {"reply_to": None}),
    "get_messages": ({"chat_id"}, {"limit": 20, "offset_id": None}),
    "search_messages": ({"query"}, {"chat_id": None, "limit": 20}),
    "delete_messages": ({"chat_id", "message_ids"}, {}),
    "list_chats": (set(), {"limit": 50}),
    "get_chat": ({"chat_id"}, {}),
    "create_group": ({"title", "user_ids"}, {}),
    "add_contact": ({"phone", "first_name"}, {"last_name": None}),
    "search_users": ({"query"}, {"limit": 10}),
    "send_media": ({"chat_id", "file_path"}, {"caption": None}),
    "download_media": ({"chat_id", "message_id", "output_path"}, {}),
    "get_me": (set(), {}),
    "get_new_messages": (set(), {"peek": False}),
    "subscribe_chat": ({"action"}, {"chat_id": None}),
}
READS = {"list_contacts", "get_messages", "search_messages", "list_chats", "get_chat", "search_users", "get_me"}
DESTROYS = {"send_message", "send_media", "delete_messages", "create_group"}
REPEATABLE = {*READS, "mark_read", "delete_messages", "add_contact", "subscribe_chat"}


@pytest.mark.req("SRV-TEL", "SRV-ALL")
async def test_without_an_account_all_sixteen_tools_are_listed_and_say_what_to_run(as_process: Connect) -> None:
    async with as_process(*TELEGRAM) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        refused = await client.call_tool("list_chats", {})
        ready = await client.call_tool("readiness", {})
    assert tools.keys() - {"readiness", "read_updates", "send_reply"} == CATALOGUE.keys()
    for name, (required, optional) in CATALOGUE.items():
        schema, hints = tools[name].input_schema, tools[name].annotations
        properties = schema.get("properties", {})
        assert set(schema.get("required", [])) == required, name
        assert {key: value.get("default") for key, value in properties.items() if key not in required} == optional
        assert all(value["description"] for value in properties.values())
        assert hints is not None
        assert hints.read_only_hint is (name in READS)
        assert hints.destructive_hint is (name in DESTROYS)
        assert hints.idempotent_hint is (name in REPEATABLE)
        assert hints.open_world_hint is True
    assert refused.is_error
    assert refused.structured_content["error"]["hint"] == "Run: annabelle connect telegram"
    assert ready.structured_content["missing"].endswith("Run: annabelle connect telegram")


@pytest.mark.req("SRV-TEL")
async def test_a_conversation_over_the_protocol(as_process: Connect, home: Home) -> None:
    write_connection(home, "telegram", account())
    path = os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH")]))
    async with as_process(DOUBLE, PYTHONPATH=path) as client:
        new = await client.call_tool("get_new_messages", {})
        chat = new.structured_content["chats"][0]["chat_id"]
        sent = await client.call_tool("send_message", {"chat_id": chat, "message": "Gut! 🌻"})
        read = await client.call_tool("get_messages", {"chat_id": chat})
        refused = await client.call_tool("get_chat", {"chat_id": "@nobody_here"})
    assert "Ada Lovelace: Wie geht's? 🌞" in new.content[0].text
    assert sent.structured_content["message_ids"] == [2]
    assert "me: Gut! 🌻" in read.content[0].text
    assert refused.structured_content["error"]["code"] == "not_found"


@pytest.mark.req("SRV-ALL")
def test_the_library_is_not_loaded_before_it_is_used(home: Home) -> None:
    program = (
        "import asyncio, sys\n"
        "from annabelle.servers.telegram.server import build\n"
        "server = build()\n"
        "asyncio.run(server.tools['readiness'].call({}))\n"
        "print([name for name in ('telethon', 'httpx2', 'sqlalchemy') if name in sys.modules])\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds(60))
    assert (shown.stdout, shown.stderr) == ("[]\n", "")


@pytest.mark.req("EXT-01")
def test_the_manifest_says_what_the_toolbox_needs() -> None:
    manifest = tomllib.loads((Path(annabelle.servers.telegram.__file__).parent / "manifest.toml").read_text())
    assert (manifest["name"], manifest["transport"], manifest["group"]) == ("telegram", "stdio", "chat")
    assert callable(main)
    assert manifest["sensitive"]
    assert not any("KEY" in name or "HASH" in name or "TOKEN" in name for name in manifest["env"])
