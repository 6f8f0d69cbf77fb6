"""Copies of tables inside a PostgreSQL database that hold a text are dropped, and trouble with them is one sentence."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from annabelle.core.errors import StorageTrouble
from annabelle.core.secrets.forget_mask import ForgetMatcher
from annabelle.hub.forgetting.databases import DatabaseSnapshots, explain_search_failure
from annabelle.store.database import make_engine
from support.postgres import postgres, postgres_url  # noqa: F401  fixtures

SECRET = ForgetMatcher(["vault 7"])
ROWS = "SELECT n, 'the vault ' || n AS fact FROM generate_series(1, 3000) AS n"


@pytest.mark.req("TRU-09")
async def test_only_the_copies_that_hold_the_text_are_dropped(postgres_url: str):  # noqa: F811  the fixture
    engine = make_engine(postgres_url)
    with engine.begin() as connection:
        for schema in ("backup_0001_a", "memory_backup_0001_b"):
            connection.execute(sa.text(f"CREATE SCHEMA {schema}"))
            connection.execute(sa.text(f"CREATE TABLE {schema}.facts AS {ROWS}"))
        connection.execute(sa.text("DELETE FROM backup_0001_a.facts WHERE fact LIKE '%vault 7%'"))
    snapshots = DatabaseSnapshots(postgres_url)

    assert await snapshots.find_holding(SECRET) == ["memory_backup_0001_b"]
    assert await snapshots.drop(SECRET) == 1

    assert await snapshots.find_holding(SECRET) == []
    with engine.begin() as connection:
        assert "backup_0001_a" in sa.inspect(connection).get_schema_names()
    engine.dispose()


async def test_what_a_driver_says_is_told_without_its_words(postgres_url: str):  # noqa: F811  the fixture
    engine = make_engine(postgres_url)
    with pytest.raises(StorageTrouble) as trouble, explain_search_failure("turns.db"), engine.begin() as connection:
        connection.execute(sa.text("SELECT 'vault 7' FROM nowhere"))
    engine.dispose()
    assert trouble.value.message == "turns.db could not be searched: UndefinedTable."
