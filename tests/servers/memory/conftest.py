"""A memory in this process, on each engine, called as any user, agent or person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from annabelle.core.home import Home
from annabelle.embeddings import EmbeddingConfig
from annabelle.servers.memory.config import MemoryConfig
from servers.memory.memories import MakeMemory, Memory
from support.postgres import early, postgres, postgres_tables_url, postgres_url  # noqa: F401  fixtures


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    early(items)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    """Which database; parametrize it indirectly, or ask for `sqlite_config`, where one of them is meant."""
    return request.param


@pytest.fixture
def sqlite_config(home: Home) -> MemoryConfig:
    return MemoryConfig(
        file=home.memory_file,
        backups=home.backups,
        export_folder=home.memory_export,
        workspace=home.workspace,
        embedding_cache=home.embedding_cache,
        embedding=EmbeddingConfig(),
        backup_hours=0,
    )


@pytest.fixture
def config(engine: str, sqlite_config: MemoryConfig, request: pytest.FixtureRequest) -> MemoryConfig:
    url = request.getfixturevalue("postgres_tables_url") if engine == "postgresql" else None
    return replace(sqlite_config, database_url=url)


@pytest.fixture
async def open_memory(request: pytest.FixtureRequest) -> AsyncIterator[MakeMemory]:
    """Make memories, also several on one database one after the other; each is closed at the end."""
    if "config" in request.fixturenames:
        request.getfixturevalue("config")  # its database outlives the memories that are open on it
    async with AsyncExitStack() as stack:

        def make(config: MemoryConfig, **changes: Any) -> Memory:
            memory = Memory(replace(config, **changes))
            stack.push_async_callback(memory.close)
            return memory

        yield make


@pytest.fixture
def memory(open_memory: MakeMemory, config: MemoryConfig) -> Memory:
    """A memory on each engine. Nothing is opened before the first call."""
    return open_memory(config)
