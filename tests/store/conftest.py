"""A database on each engine for every test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from annabelle.core.messages import InboundMessage
from annabelle.store import messages, threads
from annabelle.store.database import Database, sqlite_url
from annabelle.store.messages import QueuedReceipt, QueueLimits
from annabelle.store.threads import Thread
from support.postgres import early, postgres, postgres_tables_url, postgres_url  # noqa: F401  fixtures


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    early(items)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "annabelle.db")
    return request.getfixturevalue("postgres_tables_url")


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "annabelle.db")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def db(database_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(database_url, backups=tmp_path / "backups")
    yield opened
    await opened.close()


@pytest.fixture
async def thread(db: Database) -> Thread:
    return await db.write(
        lambda c: threads.find_or_create_thread(c, channel="cli", chat_id="main", user_id="owner", agent_id="annabelle")
    )


@pytest.fixture
def receive(db: Database, thread: Thread):
    """Receive a message in the thread, or in another chat's."""

    async def take(
        text: str, *, chat_id: str = "main", limits: QueueLimits | None = None, **fields: object
    ) -> QueuedReceipt:
        message = InboundMessage.model_validate(
            {"channel": "cli", "chat_id": chat_id, "sender_id": "ada", "text": text, **fields}
        )

        def change(c) -> QueuedReceipt:
            where = threads.find_or_create_thread(
                c,
                channel="cli",
                chat_id=chat_id,
                user_id=message.user_id,
                agent_id=message.agent_id or "annabelle",
            )
            return messages.queue_message(c, where, message, limits or QueueLimits())

        return await db.write(change)

    return take
