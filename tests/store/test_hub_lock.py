"""One hub per PostgreSQL database: a second one is refused, and the first one's end lets the next in."""

from __future__ import annotations

import pytest

from annabelle.core.errors import AlreadyRunning
from annabelle.store.hub_lock import HubLock


@pytest.mark.req("DUR-01")
async def test_a_second_hub_on_one_database_is_refused_until_the_first_has_ended(postgres_url: str) -> None:
    first = await HubLock.acquire(postgres_url)
    with pytest.raises(AlreadyRunning, match="Another hub already works on the database") as refused:
        await HubLock.acquire(postgres_url, wait_seconds=0)
    assert "two hubs on one are not supported" in (refused.value.hint or "")
    await first.release()
    second = await HubLock.acquire(postgres_url, wait_seconds=5)
    await second.release()
