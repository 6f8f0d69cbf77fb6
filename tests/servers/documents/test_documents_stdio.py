"""The documents server as a real process, spoken to with the official client."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import annabelle.servers.documents
from annabelle.core.home import Home
from annabelle.servers.documents.__main__ import main
from servers.documents import papers
from servers.speaking import Connect

DOCUMENTS = ("-m", "annabelle.servers.documents")
TOOLS = {
    "read_document", "get_document_info", "search_document", "list_sheets", "read_spreadsheet", "extract_tables",
    "get_image_info", "list_archive",
}  # fmt: skip


@pytest.mark.req("SRV-ALL")
async def test_documents_are_read_over_the_protocol(as_process: Connect, home: Home) -> None:
    home.workspace.mkdir()
    files = {"a.pdf": papers.pdf("Hello"), "a.xlsx": papers.excel(), "a.jpg": papers.photo(), "bad.pdf": b"%PDF-1.4"}
    for name, data in files.items():
        (home.workspace / name).write_bytes(data)
    async with as_process(*DOCUMENTS) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        text = await client.call_tool("read_document", {"path": "a.pdf"})
        rows = await client.call_tool("read_spreadsheet", {"path": "a.xlsx", "range": "A2:B2"})
        photo = await client.call_tool("get_image_info", {"path": "a.jpg"})
        bad = await client.call_tool("read_document", {"path": "bad.pdf"})
    assert tools.keys() == TOOLS
    assert all(tool.annotations.read_only_hint and not tool.annotations.open_world_hint for tool in tools.values())
    assert "Hello" in text.content[0].text
    assert rows.structured_content["rows"] == [["Tea", 2.5]]
    assert photo.structured_content["latitude"] == 52.5
    assert bad.is_error
    assert bad.structured_content["error"]["code"] == "invalid_arguments"
    assert "Traceback" not in bad.content[0].text


@pytest.mark.req("EXT-01")
def test_the_manifest_needs_no_secret() -> None:
    manifest = tomllib.loads((Path(annabelle.servers.documents.__file__).parent / "manifest.toml").read_text())
    assert (manifest["name"], manifest["group"]) == ("documents", "documents")
    assert not any("KEY" in name or "TOKEN" in name for name in manifest["env"])
    assert callable(main)
