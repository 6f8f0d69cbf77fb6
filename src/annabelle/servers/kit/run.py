"""Runs a server over its standard input and output until the other side hangs up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable

from annabelle.core.errors import AnnabelleError
from annabelle.core.logs import configure_logging
from annabelle.core.redact import Redactor
from annabelle.servers.kit.pipes import standard_pipes
from annabelle.servers.kit.server import ToolServer

_log = logging.getLogger(__name__)
_LEVELS = ("debug", "info", "warning", "error")

CLOSE_SECONDS = 10.0
"""How long a server may take to let go of what it holds; whoever stops it may have less patience."""


def run(build: Callable[[], ToolServer]) -> None:
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


async def serve(server: ToolServer) -> None:
    """Answer requests until standard input ends."""
    async with standard_pipes() as (read_stream, write_stream):
        _log.debug("%s serves %d tools", server.name, len(server.tools))
        try:
            await server.protocol.serve(read_stream, write_stream)
        finally:
            await _close(server)


async def _close(server: ToolServer) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await server.close()
    except (TimeoutError, AnnabelleError) as error:
        _log.warning("%s was not closed properly: %s", server.name, error or "it took too long")
