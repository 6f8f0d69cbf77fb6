"""A filer in this process, and servers as real processes spoken to with the official client."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.shared.memory import create_client_server_memory_streams
from pydantic import BaseModel

from annabelle.core.home import Home
from annabelle.servers.filer.server import build
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from servers.speaking import CallTool, Connect, Mode, WriteGrants


@pytest.fixture
def config(home: Home, tmp_path: Path) -> FilesConfig:
    user_home = tmp_path / "person"
    user_home.mkdir()
    return FilesConfig(
        home=home,
        user_home=user_home,
        workspace=home.workspace,
        grants_file=home.config / "filer-grants.json",
        audit_file=home.logs / "filer-audit.jsonl",
    )


@pytest.fixture
def workspace(config: FilesConfig) -> Path:
    return config.workspace


@pytest.fixture
def filer(config: FilesConfig) -> ToolServer:
    return build(config)


@pytest.fixture
def call(filer: ToolServer) -> CallTool:
    """Call a tool of the filer without a protocol in between."""

    async def do(name: str, **arguments: object) -> BaseModel:
        return await filer.tools[name].call(arguments)

    return do


@pytest.fixture
def grant(config: FilesConfig) -> WriteGrants:
    """Write the grants file as the user would."""

    def write(permissions: dict[Path, str]) -> None:
        entries = [{"path": str(path), "permission": permission} for path, permission in permissions.items()]
        config.grants_file.write_text(json.dumps({"grants": entries}))

    return write


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the home, with a file nobody may read without a grant."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("the secret")
    return folder


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> Mode:
    """Clients of the newest protocol, and of the one before."""
    return request.param


@pytest.fixture
def in_memory(mode: Mode) -> Connect:
    """The official client connected to a server of this process."""

    @asynccontextmanager
    async def connect(server: ToolServer) -> AsyncGenerator[Client]:
        async with create_client_server_memory_streams() as (client_side, server_side), anyio.create_task_group() as tg:
            tg.start_soon(server.protocol.serve, *server_side)

            @asynccontextmanager
            async def transport():
                yield client_side

            async with Client(transport(), mode=mode) as client:
                yield client
            tg.cancel_scope.cancel()

    return connect


@pytest.fixture
def as_process(home: Home) -> Connect:
    """The official client connected to a server process, as any MCP client would start it.

    `test_every_server` speaks both protocols to every server; here the newest one does.
    """

    @asynccontextmanager
    async def connect(*arguments: str, **environment: str) -> AsyncGenerator[Client]:
        parameters = StdioServerParameters(
            command=sys.executable, args=list(arguments), env={**os.environ, **environment}
        )
        async with Client(stdio_client(parameters)) as client:
            yield client

    return connect
