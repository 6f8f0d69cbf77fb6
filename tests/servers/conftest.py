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
from servers.speaking import SAMPLE, CallTool, Connect, Mode, WriteGrants
from support.forked_stdio import forked_stdio
from support.warm_process import can_fork

_SAMPLE_MODULE = "servers.sample_server"


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
    """The official client connected to a server process.

    `test_every_server` starts every server as any MCP client would, and speaks both protocols; here it is forked.
    """

    @asynccontextmanager
    async def connect(*arguments: str, **environment: str) -> AsyncGenerator[Client]:
        environment = {**os.environ, **environment}
        program = _SAMPLE_MODULE if arguments == (SAMPLE,) else f"{arguments[-1]}.__main__"
        if (arguments == (SAMPLE,) or arguments[0] == "-m") and can_fork(environment):
            async with Client(forked_stdio(program, environment)) as client:
                yield client
            return
        parameters = StdioServerParameters(command=sys.executable, args=list(arguments), env=environment)
        async with Client(stdio_client(parameters)) as client:
            yield client

    return connect
