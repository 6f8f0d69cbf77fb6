"""A documents server in this process, which reads in a thread; the process that reads has tests of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from annabelle.servers.documents.document_access import ThreadRunner
from annabelle.servers.documents.server import build
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from servers.speaking import CallTool

Put = Callable[[str, bytes], str]


@pytest.fixture
def documents(config: FilesConfig) -> ToolServer:
    return build(config, ThreadRunner())


@pytest.fixture
def ask(documents: ToolServer) -> CallTool:
    """Call a tool without a protocol in between."""

    async def do(tool: str, /, **arguments: object) -> BaseModel:
        return await documents.tools[tool].call(arguments)

    return do


@pytest.fixture
def put(workspace: Path) -> Put:
    """Put a file into the workspace, as a person would."""

    def write(name: str, data: bytes) -> str:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(data)
        return name

    return write
