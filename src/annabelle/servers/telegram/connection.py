"""The shared connection to Telegram: opened by the first call and closed when idle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from annabelle.core.connections import TelegramAccount
from annabelle.core.errors import Unavailable
from annabelle.servers.kit import deferred_module, in_thread
from annabelle.servers.telegram.api import AccountFile, SignedOut

if TYPE_CHECKING:
    from annabelle.servers.telegram.mtproto import client as mtproto
    from annabelle.servers.telegram.mtproto.client import TelethonApi
else:
    mtproto = deferred_module("annabelle.servers.telegram.mtproto.client")


MakeApi = Callable[[TelegramAccount], "TelethonApi"]

_log = logging.getLogger(__name__)

CONNECT_SECONDS = 30.0
CLOSE_SECONDS = 5.0


class TelegramConnection:
    """One connection for one account. A changed account or a broken connection is reopened at the next call."""

    def __init__(self, account: AccountFile, idle_seconds: float, make: MakeApi | None = None) -> None:
        self._file, self._idle_seconds, self._make = account, idle_seconds, make
        self._opening = asyncio.Lock()
        self._api: TelethonApi | None = None
        self._account: TelegramAccount | None = None
        self._refused: TelegramAccount | None = None
        self._users = 0
        self._idle: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[TelethonApi]:
        """Yield the connected account for one call."""
        self._users += 1
        self._cancel_idle_timer()
        try:
            api, account = await self._ensure_connected()
            try:
                yield api
            except SignedOut:
                self._refused = account  # the account of this call; another may be connected by now
                raise
        finally:
            self._users -= 1
            if not self._users:
                self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._disconnect)

    async def describe_missing(self) -> str | None:
        """What is missing, without using the network."""
        missing = await self._file.describe_missing()
        if missing is None and self._refused is self._file.read():
            error = SignedOut()
            return f"{error.message} {error.hint}"
        return missing

    async def close(self) -> None:
        self._cancel_idle_timer()
        self._disconnect()
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_SECONDS)

    async def _ensure_connected(self) -> tuple[TelethonApi, TelegramAccount]:
        async with self._opening:  # concurrent calls share one connection
            account = self._file.read()
            if account is self._refused:
                raise SignedOut
            if self._api is not None and self._account is account and self._api.connected:
                return self._api, account
            self._disconnect()
            make = self._make or await in_thread(lambda _stop: mtproto.make_api)
            api = make(account)
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await api.connect()
            except TimeoutError as error:
                self._close_in_background(api)
                raise Unavailable("Telegram did not answer in time.", hint="Try again in a minute.") from error
            except BaseException as error:
                if isinstance(error, SignedOut):
                    self._refused = account
                self._close_in_background(api)
                raise
            self._api, self._account = api, account
            return api, account

    def _cancel_idle_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _disconnect(self) -> None:
        api, self._api, self._account = self._api, None, None
        if api is not None:
            self._close_in_background(api)

    def _close_in_background(self, api: TelethonApi) -> None:
        task = asyncio.get_running_loop().create_task(_close(api))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _close(api: TelethonApi) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await api.close()
    except (OSError, TimeoutError, Unavailable) as error:
        _log.info("The connection to Telegram did not close properly: %s", type(error).__name__)
