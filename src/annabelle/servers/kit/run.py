"""Runs a server over its standard input and output until the other side hangs up."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, cast

from annabelle.core.errors import AnnabelleError
from annabelle.core.logs import configure_logging
from annabelle.core.redact import Redactor
from annabelle.servers.kit.listed import ListedServer
from annabelle.servers.kit.listing import read_listing, write_listing
from annabelle.servers.kit.pipes import standard_pipes
from annabelle.servers.kit.readiness import Readiness
from annabelle.servers.kit.registry import Registry
from annabelle.servers.kit.server import ToolServer

_log = logging.getLogger(__name__)
_LEVELS = ("debug", "info", "warning", "error")

C = TypeVar("C")

SOON_SECONDS = 2.0
"""After so long a start is over, and its servers have the machine for themselves."""

CLOSE_SECONDS = 10.0
"""How long a server may take to let go of what it holds; whoever stops it may have less patience."""


class Served(Protocol):
    """What a process needs of the server it runs."""

    name: str
    protocol: Registry
    keep_out_of_logs: Callable[[Iterable[str]], None] | None

    async def close(self) -> None: ...


def run(build: Callable[[], Served]) -> None:
    """The whole life of a server process. What keeps it from starting is one sentence on stderr and an exit code."""
    level = os.environ.get("LOG_LEVEL", "info").lower()
    redact = Redactor.from_environment()
    configure_logging("server", None, level if level in _LEVELS else "info", redact)
    try:
        server = build()
    except AnnabelleError as error:
        _log.error("%s %s", error.message, error.hint or "")
        sys.exit(error.exit_code)
    server.keep_out_of_logs = redact.learn
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C in a terminal reaches servers too; they just end
        asyncio.run(serve(server))


def run_listed(
    package: str,
    settings: Callable[[], C],
    readiness: Callable[[C], Readiness] | None = None,
    *,
    in_every_message: bool = False,
) -> None:
    """The same for a server whose package is in the usual shape: its tools are put together when one is called.

    `settings` is read at the start, so what is wrong with them is said then, and handed to `build` in the package's
    `server` module. `readiness` answers until the tools are there; it and `settings` should import little. A server
    that is part of every message does not wait for the first one, only for the start to be over.
    """
    run(lambda: _listed(package, settings(), readiness, SOON_SECONDS if in_every_message else None))


def _listed(package: str, config: C, readiness: Callable[[C], Readiness] | None, soon_seconds: float | None) -> Served:
    def build() -> ToolServer:
        made = cast("Callable[[C], ToolServer]", importlib.import_module(f"{package}.server").build)
        return made(config)

    listing = read_listing(package)
    if listing is not None:
        ask = None if readiness is None else readiness(config)
        return ListedServer(listing, build, ask, soon_seconds=soon_seconds)
    server = build()
    if not sys.dont_write_bytecode:
        write_listing(package, server)
    return server


async def serve(server: Served) -> None:
    """Answer requests until standard input ends."""
    async with standard_pipes() as (read_stream, write_stream):
        _log.debug("%s serves", server.name)
        try:
            await server.protocol.serve(read_stream, write_stream)
        finally:
            await _close(server)


async def _close(server: Served) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await server.close()
    except (TimeoutError, AnnabelleError) as error:
        _log.warning("%s was not closed properly: %s", server.name, error or "it took too long")
