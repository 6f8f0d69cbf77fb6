"""A conversation with a server process over its pipes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.redact import Forms, Redactor
from annabelle.core.tools import JsonObject
from annabelle.toolbox.connections.connection import Connect, Connection, Introduction
from annabelle.toolbox.processes.launch import Child, Launch, Launcher, last_words
from annabelle.toolbox.processes.overheard import launch_overheard
from annabelle.toolbox.protocol.errors import ConnectionLost, WireTrouble
from annabelle.toolbox.protocol.rpc import PIPES_CLOSED, Answer, Rpc
from annabelle.toolbox.protocol.session import Session

_LAST_WORDS_SECONDS = 0.5
_TOOLS_CHANGED = "notifications/tools/list_changed"


@dataclass(frozen=True, slots=True)
class Manners:
    """How one is spoken with: how much is read, how long a probe may take, and what is not repeated in public."""

    message_max_bytes: int
    probe_seconds: float
    redact: Redactor


class StdioConnection:
    """Ends when the process ends or closes its pipes; closing it ends the process."""

    def __init__(self, child: Child, rpc: Rpc, session: Session, known: Forms) -> None:
        self._child, self._rpc, self._session, self._known = child, rpc, session, known
        child.exited.add_done_callback(self._on_exit)

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def protocol(self) -> str | None:
        return self._session.protocol

    @property
    def garbage_lines(self) -> int:
        return self._rpc.garbage_lines

    @property
    def ended(self) -> asyncio.Future[str]:
        return self._rpc.ended

    @property
    def epitaph(self) -> str | None:
        """Closed pipes are mostly the first sign of an ended process, and its exit tells more."""
        by_itself = self._rpc.ended.done() and self._rpc.ended.result() == PIPES_CLOSED
        return _how_it_ended(self._child.exited.result()) if by_itself and self._child.exited.done() else None

    async def introduce(self) -> Introduction:
        session = self._session
        introduction = Introduction(
            str(session.server.get("name", "")),
            str(session.server.get("version", "")),
            session.instructions,
            tuple(await session.list_prompts()),
            tuple(await session.list_resources()),
        )
        return introduction.without(self._known)

    async def list_tools(self) -> list[JsonObject]:
        return [self._known.masked_object(tool) for tool in await self._session.list_tools()]

    async def call_tool(self, name: str, arguments: JsonObject, meta: JsonObject) -> Answer:
        return await self._session.call_tool(name, arguments, meta)

    async def ping(self) -> None:
        await self._session.ping()

    async def close(self, grace: float) -> None:
        """Close its input, which asks it to end; then TERM, then KILL."""
        self._rpc.hang_up()
        if not await self._child.wait(grace / 2):
            await self._child.end(grace / 2)
        self._rpc.end("it was stopped")

    def _on_exit(self, exited: asyncio.Future[int | None]) -> None:
        self._rpc.end(_how_it_ended(exited.result()))


def _how_it_ended(code: int | None) -> str:
    how = "" if code is None else f" with code {code}" if code >= 0 else f" by signal {-code}"
    return f"its process ended{how}"


def stdio_connect(launcher: Launcher, order: Launch, manners: Manners) -> Connect:
    """How to start this server's process and come to terms with it."""

    async def connect(on_tools_changed: Callable[[], None]) -> Connection:
        def on_notification(method: str, params: JsonObject) -> None:
            if method == _TOOLS_CHANGED:
                on_tools_changed()

        log_size = order.log.stat().st_size if order.log.exists() else 0
        child, overheard = await launch_overheard(launcher, order, manners.redact)
        rpc = Rpc(order.name, manners.message_max_bytes, on_notification)
        try:
            await rpc.open(child.stdin, child.stdout)
            session = Session(rpc, manners.probe_seconds)
            # What our own servers list is written by us.
            known = manners.redact.known if order.module is None else Forms(())
            connection = StdioConnection(child, rpc, session, known)
            await session.negotiate()
            await session.listen()
        except WireTrouble as error:
            if not isinstance(error, ConnectionLost) or not await child.wait(0.5):
                await child.end(0.5)
            rpc.end("it did not start")
            reason = error.reason if isinstance(error, ConnectionLost) else str(error)
            if reason == PIPES_CLOSED and child.exited.done():
                reason = _how_it_ended(child.exited.result())
            await overheard.end_of_words(_LAST_WORDS_SECONDS)
            said = manners.redact(last_words(order.log)) if _grown(order.log, log_size) else ""
            raise ConnectionLost(f"{reason}{f'; it said: {said}' if said else ''}", sent=False) from error
        except BaseException:
            rpc.end("it did not start")
            await asyncio.shield(asyncio.ensure_future(child.end(0)))
            raise
        return connection

    return connect


def _grown(log: Path, size: int) -> bool:
    try:
        return os.stat(log).st_size > size
    except OSError:
        return False
