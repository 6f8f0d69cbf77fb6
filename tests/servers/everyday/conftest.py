"""An everyday server in this process, with a clock that stands still and an outside of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from annabelle.servers.everyday.config import EverydayConfig
from annabelle.servers.everyday.server import build
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from servers.everyday.counterparts import Outside, running
from servers.speaking import CallTool


class HandClock:
    """A clock that goes when a test says so. It begins on a Sunday morning."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go(self, **span: float) -> None:
        self.now += timedelta(**span)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def outside() -> Iterator[Outside]:
    with running(Outside()) as made:
        yield made


@pytest.fixture
def everyday_config(config: FilesConfig, outside: Outside, clock: HandClock, tmp_path: Path) -> EverydayConfig:
    return EverydayConfig(
        files=config,
        folder=config.home.data / "everyday",
        zone="Europe/Berlin",
        weather_url=outside.url,
        geocoding_url=outside.url,
        currency_url=outside.url,
        private_hosts=outside.host,
        clock=clock,
    )


@pytest.fixture
def everyday(everyday_config: EverydayConfig) -> ToolServer:
    return build(everyday_config)


@pytest.fixture
def ask(everyday: ToolServer) -> CallTool:
    """Call a tool without a protocol in between."""

    async def do(tool: str, /, **arguments: object) -> BaseModel:
        return await everyday.tools[tool].call(arguments)

    return do


@pytest.fixture
def made_workspace(workspace: Path) -> Path:
    """The workspace, for tests that put files there themselves."""
    workspace.mkdir()
    return workspace
