"""A notes server in this process."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.notes.server import build
from servers.speaking import CallTool


@pytest.fixture
def notes(config: FilesConfig) -> ToolServer:
    return build(config)


@pytest.fixture
def ask(notes: ToolServer) -> CallTool:
    """Call a tool without a protocol in between."""

    async def do(tool: str, /, **arguments: object) -> BaseModel:
        return await notes.tools[tool].call(arguments)

    return do
