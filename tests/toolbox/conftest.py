"""A toolbox on the test servers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.core.home import Home
from annabelle.core.tools import CallContext
from annabelle.toolbox.config import PRELOADED, ManifestFolder, ToolboxConfig
from annabelle.toolbox.facade import Toolbox, ToolServers
from support.timing import seconds
from support.toolbox import QUICK, SERVERS, TESTS, MemoryJournal


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def config(home: Home, tmp_path: Path) -> ToolboxConfig:
    """No server at all; `with_servers` adds some."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ECHO_SECRET": "echo-only-secret-1",
        "OTHER_SECRET": "nobodys-secret-2",
        "WITNESS_FILE": str(tmp_path / "witness.txt"),
    }
    return ToolboxConfig(
        home=home,
        environment=environment,
        external_file=home.config / "external-mcps.json",
        manifest_folders=(),
        limits=QUICK,
        external_need_approval=False,
        python_path=(str(TESTS),),
        preload=(*PRELOADED, "support.servers.stage"),
    )


@pytest.fixture
def with_servers(config: ToolboxConfig, tmp_path: Path) -> Callable[..., ToolboxConfig]:
    """The configuration with exactly these test servers."""

    def choose(*names: str, **changes: object) -> ToolboxConfig:
        folder = tmp_path / "manifests"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).symlink_to(SERVERS / name)
        return replace(config, manifest_folders=(ManifestFolder(folder, "support.servers"),), **changes)  # type: ignore[arg-type]

    return choose


@pytest.fixture
async def start(journal: MemoryJournal) -> AsyncIterator[Callable[[ToolboxConfig], Awaitable[Toolbox]]]:
    """Start a toolbox that is stopped when the test ends."""
    async with AsyncExitStack() as stack:

        async def started(config: ToolboxConfig) -> Toolbox:
            toolbox = Toolbox(ToolServers(config, journal))
            stack.push_async_callback(toolbox.stop)
            await asyncio.wait_for(toolbox.start(), seconds(60))
            return toolbox

        yield started


@pytest.fixture
def person() -> CallContext:
    return CallContext(caller="api", user_id="owner", trace_id="tr_test")


@pytest.fixture
def as_agent() -> Callable[[str], CallContext]:
    return lambda call_id: CallContext(caller="agent", agent_id="annabelle", user_id="owner", call_id=call_id)
