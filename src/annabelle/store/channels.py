"""Accounts of people in channels, and what came in there: stored before it is acknowledged (CHN-02, CHN-04)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, select, update

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.portable_sql import InsertNew, InsertOrUpdate, read_all, read_first
from annabelle.store.tables import channel_accounts as accounts, channel_cursors as cursors, channel_updates as updates

_put_account = InsertOrUpdate(accounts, ["channel", "account_id"], ["user_id", "name", "chat_id", "created_at"])
_put_cursor = InsertOrUpdate(cursors, ["channel"], ["cursor"])
_insert_update = InsertNew(updates, ["channel", "external_id"])


@dataclass(frozen=True, slots=True)
class LinkedAccount:
    """An account in a channel that belongs to a user."""

    channel: str
    account_id: str
    user_id: str
    name: str
    chat_id: str | None
    """Where it was paired; None if it was let in by its id."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredUpdate:
    """A message as a channel delivered it. `stale`: it came while nobody listened, and is only listed."""

    position: int
    channel: str
    external_id: str
    user_id: str
    chat_id: str
    content: JsonObject | None
    stale: bool
    received_at: datetime


def link_account(connection: Connection, account: LinkedAccount) -> None:
    _put_account(connection, {name: getattr(account, name) for name in LinkedAccount.__slots__})


def find_account(connection: Connection, channel: str, account_id: str) -> LinkedAccount | None:
    query = select(accounts).where(accounts.c.channel == channel, accounts.c.account_id == account_id)
    return read_first(connection, LinkedAccount, query)


def list_accounts(connection: Connection) -> list[LinkedAccount]:
    return read_all(connection, LinkedAccount, select(accounts).order_by(accounts.c.channel, accounts.c.created_at))


def unlink_account(connection: Connection, channel: str, account_id: str) -> None:
    """What it has sent and nobody has read yet is not read any more: whoever reads it asks whose account it is."""
    connection.execute(delete(accounts).where(accounts.c.channel == channel, accounts.c.account_id == account_id))


def read_cursor(connection: Connection, channel: str) -> str | None:
    return connection.execute(select(cursors.c.cursor).where(cursors.c.channel == channel)).scalar_one_or_none()


def write_cursor(connection: Connection, channel: str, cursor: str) -> None:
    _put_cursor(connection, {"channel": channel, "cursor": cursor})


def add_update(
    connection: Connection, account: LinkedAccount, external_id: str, chat_id: str, content: JsonObject, *, stale: bool
) -> bool:
    """Whether it is new."""
    values: JsonObject = {
        "channel": account.channel,
        "external_id": external_id,
        "user_id": account.user_id,
        "chat_id": chat_id,
        "content": content,
        "stale": stale,
        "received_at": now(),
    }
    return _insert_update.insert(connection, values) is not None


def list_open_updates(connection: Connection, limit: int = 1000) -> list[StoredUpdate]:
    query = select(updates).where(updates.c.content.is_not(None)).order_by(updates.c.position).limit(limit)
    return read_all(connection, StoredUpdate, query)


def close_updates(connection: Connection, positions: list[int]) -> None:
    """Keep only that they came, so that a repeat is known."""
    connection.execute(update(updates).where(updates.c.position.in_(positions)).values(content=None))


def delete_old_updates(connection: Connection, older_than: timedelta) -> None:
    before = now() - older_than
    connection.execute(delete(updates).where(updates.c.content.is_(None), updates.c.received_at < before))
