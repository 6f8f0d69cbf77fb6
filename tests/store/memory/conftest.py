"""A memory on each engine, and two people who must never meet in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from annabelle.store.database import Database, sqlite_url
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import MEMORY_PLAN


@pytest.fixture(params=["sqlite", "postgresql"])
def memory_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "memory.db")
    return request.getfixturevalue("postgres_tables_url")


@pytest.fixture
async def memory_db(memory_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(memory_url, backups=tmp_path / "backups", plan=MEMORY_PLAN)
    yield opened
    await opened.close()


@pytest.fixture
def ada() -> Owner:
    return Owner("ada", "annabelle")


@pytest.fixture
def bob() -> Owner:
    """Another user of the same agent."""
    return Owner("bob", "annabelle")
