"""A connection to a server reached by URL, over the SDK's HTTP client.

The SDK is imported with the first such server: most installs have none, and the import takes a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
from collections.abc import Callable, Generator
from typing import Protocol, cast

from annabelle.core.secrets.redactor import Redactor
from annabelle.core.tools import JsonObject
from annabelle.toolbox.mcp.connection import Connect, Connection, ServerIntroduction
from annabelle.toolbox.mcp.rpc import ConnectionLost, RpcAnswer


class HttpSession(Protocol):
    """The part of the SDK in use, implemented in `mcp/sdk.py`."""

    protocol: str | None

    async def introduce(self) -> ServerIntroduction: ...

    async def list_tools(self) -> list[JsonObject]: ...

    async def call_tool(self, name: str, arguments: JsonObject, meta: JsonObject) -> JsonObject: ...

    async def ping(self) -> None: ...


class OpenSession(Protocol):
    def __call__(
        self, url: str, headers: dict[str, str], on_tools_changed: Callable[[], None]
    ) -> contextlib.AbstractAsyncContextManager[HttpSession]: ...


class HttpConnection:
    """Runs the SDK's session in its own task, because the task that entered it must leave it."""

    pid = None
    garbage_lines = 0
    exit_reason = None

    def __init__(
        self, url: str, headers: dict[str, str], on_tools_changed: Callable[[], None], redact: Redactor
    ) -> None:
        self._url, self._headers, self._on_tools_changed = url, headers, on_tools_changed
        self._redact = redact
        # An error may quote the URL and the headers, so every header value is masked.
        self._sent = Redactor(part for value in headers.values() for part in (value, value.rpartition(" ")[2]))
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = loop.create_future()
        self._session: asyncio.Future[HttpSession] = loop.create_future()
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._hold_session())
        self.protocol: str | None = None

    async def open(self) -> None:
        session = await self._session
        self.protocol = session.protocol

    async def introduce(self) -> ServerIntroduction:
        with self._notice_loss():
            return (await self._session.result().introduce()).mask(self._redact.distinctive_secrets)

    async def list_tools(self) -> list[JsonObject]:
        with self._notice_loss():
            known = self._redact.distinctive_secrets
            return [known.mask_object(tool) for tool in await self._session.result().list_tools()]

    async def call_tool(self, name: str, arguments: JsonObject, meta: JsonObject) -> RpcAnswer:
        if self.ended.done():
            raise ConnectionLost(self.ended.result(), sent=False)
        with self._notice_loss():
            result = await self._session.result().call_tool(name, arguments, meta)
        return RpcAnswer(result, len(json.dumps(result, ensure_ascii=False).encode()))

    async def ping(self) -> None:
        with self._notice_loss():
            await self._session.result().ping()

    async def close(self, grace: float) -> None:
        self._leave.set()
        await asyncio.wait([self._task], timeout=grace)
        self._task.cancel()
        await asyncio.wait([self._task], timeout=1)
        self._end("it was closed")

    @contextlib.contextmanager
    def _notice_loss(self) -> Generator[None]:
        """There is no process to watch: only a failed request shows that the server is gone."""
        try:
            yield
        except ConnectionLost as lost:
            reason = self._redact_reason(lost.reason)  # it may quote the URL, which may hold a key
            self._end(reason)
            raise ConnectionLost(reason, sent=lost.sent) from lost

    def _redact_reason(self, reason: str) -> str:
        return self._sent(self._redact(reason))

    def _end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)

    async def _hold_session(self) -> None:
        try:
            sdk = await asyncio.to_thread(importlib.import_module, "annabelle.toolbox.mcp.sdk")
            open_session = cast("OpenSession", sdk.open_session)
            async with open_session(self._url, self._headers, self._on_tools_changed) as session:
                self._session.set_result(session)
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001  whatever the SDK raises, the server cannot be reached
            trouble = ConnectionLost(self._redact_reason(f"{type(error).__name__}: {_first_error(error)}"), sent=False)
            if not self._session.done():
                self._session.set_exception(trouble)
            self._end(trouble.reason)
        finally:
            self._end("it was closed")


def _first_error(error: BaseException) -> BaseException:
    """The SDK wraps what went wrong in groups of one."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def http_connect(url: str, headers: dict[str, str], redact: Redactor) -> Connect:
    async def connect(on_tools_changed: Callable[[], None]) -> Connection:
        connection = HttpConnection(url, headers, on_tools_changed, redact)
        try:
            await connection.open()
        except BaseException:
            await connection.close(1)
            raise
        return connection

    return connect
