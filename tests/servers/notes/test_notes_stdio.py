"""The notes server as a real process, spoken to with the official client."""

from __future__ import annotations

import tomllib
from pathlib import Path

import anyio
import pytest

import annabelle.servers.notes
from annabelle.core.home import Home
from annabelle.servers.notes.__main__ import main
from servers.speaking import Connect

NOTES = ("-m", "annabelle.servers.notes")
CHANGES = {
    "create_note", "update_note", "delete_note", "create_list", "delete_list", "add_todo", "update_todo",
    "complete_todo", "delete_todo",
}  # fmt: skip
READS = {"get_note", "list_notes", "search_notes", "list_lists", "list_todos"}


@pytest.mark.req("SRV-ALL")
async def test_notes_and_lists_work_over_the_protocol(as_process: Connect, home: Home) -> None:
    async with as_process(*NOTES) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        made = await client.call_tool("create_note", {"title": "Hello", "content": "grüße"})
        read = await client.call_tool("get_note", {"note": "hello"})
        missing = await client.call_tool("get_note", {"note": "nothing"})

        async def add(number: int) -> None:
            await client.call_tool("add_todo", {"text": f"item {number}"})

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(add, number)
        todos = await client.call_tool("list_todos", {})
        gone = await client.call_tool("delete_note", {"note": made.structured_content["id"]})
    assert tools.keys() == CHANGES | READS
    assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == READS
    destroys = {name for name, tool in tools.items() if tool.annotations.destructive_hint}
    assert destroys == {"update_note", "delete_note", "delete_list", "delete_todo"}
    assert not any(tool.annotations.open_world_hint for tool in tools.values())
    assert "grüße" in read.content[0].text
    assert missing.structured_content["error"]["code"] == "not_found"
    assert len(todos.structured_content["todos"]) == 5
    assert not (home.workspace / "Notes/Hello.md").exists()
    assert (home.workspace / gone.structured_content["backup"]).exists()


@pytest.mark.req("EXT-01")
def test_the_manifest_needs_no_secret() -> None:
    manifest = tomllib.loads((Path(annabelle.servers.notes.__file__).parent / "manifest.toml").read_text())
    assert (manifest["name"], manifest["group"]) == ("notes", "notes")
    assert not any("KEY" in name or "TOKEN" in name for name in manifest["env"])
    assert callable(main)
