"""One hub per PostgreSQL database: a second one is refused, and the first one's end lets the next in."""

from __future__ import annotations

from pathlib import Path

import pytest

from annabelle.core.errors import AlreadyRunning, AnnabelleError
from annabelle.store.database import sqlite_url
from annabelle.store.hub_lock import HubLock


@pytest.mark.req("DUR-01")
async def test_a_second_hub_on_one_database_is_refused_until_the_first_has_ended(postgres_url: str) -> None:
    first = await HubLock.acquire(postgres_url)
    assert first is not None
    with pytest.raises(AlreadyRunning, match="Another hub already works on the database") as refused:
        await HubLock.acquire(postgres_url, wait_seconds=0)
    assert "two hubs on one are not supported" in (refused.value.hint or "")
    await first.release()
    second = await HubLock.acquire(postgres_url, wait_seconds=5)
    assert second is not None
    await second.release()


async def test_a_database_that_is_not_there_is_said_in_a_sentence() -> None:
    with pytest.raises(AnnabelleError, match=r"127\.0\.0\.1:1"):
        await HubLock.acquire("postgresql://ada@127.0.0.1:1/annabelle")


async def test_a_file_needs_no_lock_but_its_own(tmp_path: Path) -> None:
    assert await HubLock.acquire(sqlite_url(tmp_path / "annabelle.db")) is None
