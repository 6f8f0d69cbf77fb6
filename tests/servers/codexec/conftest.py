"""The code server in this process, with real cells around the code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic import BaseModel

from annabelle.servers.codexec.config import CodeConfig, RunLimits
from annabelle.servers.codexec.server import build
from annabelle.servers.kit import Call, ToolServer
from annabelle.servers.kit.call import enter_call
from annabelle.servers.kit.files.config import FilesConfig
from servers.codexec.calling import CallAs, MakeServer
from servers.speaking import CallTool
from support.timing import seconds


@pytest.fixture
def code_config(config: FilesConfig) -> CodeConfig:
    return CodeConfig(files=config, limits=RunLimits(memory_mb=512, default_seconds=seconds(30)))


@pytest.fixture
async def make_server(code_config: CodeConfig) -> AsyncIterator[MakeServer]:
    """Make servers with other settings; each is closed at the end."""
    made: list[ToolServer] = []

    def make(**changes: object) -> ToolServer:
        limits = {key: changes.pop(key) for key in list(changes) if hasattr(code_config.limits, key)}
        changed = replace(code_config, limits=replace(code_config.limits, **limits), **changes)
        made.append(build(changed))
        return made[-1]

    yield make
    for server in made:
        await server.close()


@pytest.fixture
def codexec(make_server: MakeServer) -> ToolServer:
    return make_server()


@pytest.fixture
def call(codexec: ToolServer) -> CallTool:
    """Call a tool without a protocol in between."""

    async def do(name: str, /, **arguments: object) -> BaseModel:
        return await codexec.tools[name].call(arguments)

    return do


@pytest.fixture
def call_as(codexec: ToolServer) -> CallAs:
    """Call a tool as one of several agents."""

    async def do(agent: str, name: str, /, **arguments: object) -> BaseModel:
        async def inside() -> BaseModel:
            enter_call(Call(agent_id=agent))
            return await codexec.tools[name].call(arguments)

        return await asyncio.create_task(inside())

    return do
