"""Ends an account's session at Telegram, so that what was kept here opens nothing any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Protocol, cast

from telethon import errors

from annabelle.cli.connect.telegram_client import short_lived
from annabelle.core.connections import TelegramAccount

_SECONDS = 20.0
_END_SECONDS = 5.0


class LeavingClient(Protocol):
    """The part of TelegramClient that signs out."""

    async def connect(self) -> None: ...
    def disconnect(self) -> Awaitable[None]: ...
    async def log_out(self) -> bool: ...


def make_client(account: TelegramAccount) -> LeavingClient:
    client = short_lived(account.api_id, account.api_hash, account.session.get_secret_value())
    return cast("LeavingClient", client)


def end_session(account: TelegramAccount) -> bool:
    """Whether the session is over there; a Telegram that can not be reached or refuses is no reason to keep it here."""
    return asyncio.run(_leave(account))


async def _leave(account: TelegramAccount) -> bool:
    try:
        client = make_client(account)
    except ValueError:
        return False  # what was kept is no session
    try:
        async with asyncio.timeout(_SECONDS):
            await client.connect()
            return await client.log_out()
    except (errors.AuthKeyError, errors.UnauthorizedError):
        return True  # it was over already
    except (errors.RPCError, OSError, ValueError):
        return False
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await client.disconnect()
