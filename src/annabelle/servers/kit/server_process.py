"""Runs a server over standard input and output until the client disconnects. Its tools are built on the first call."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from types import TracebackType
from typing import Protocol, Self, TypeVar, cast

import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from annabelle import __version__
from annabelle.core.errors import AnnabelleError
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings, read_settings
from annabelle.core.tools import JsonObject
from annabelle.core.trace import accept_trace, configure_logging, use_trace
from annabelle.servers.kit.call import read_call
from annabelle.servers.kit.server import (
    MAX_RESULT_BYTES,
    READINESS_TOOL as READINESS,
    Context,
    MethodEntry,
    MethodRegistry,
    Readiness,
    ReadinessTool,
    ToolServer,
    to_failure,
)
from annabelle.servers.kit.tool_list_cache import ToolListing, read_listing, write_listing
from annabelle.servers.kit.tools import success

_log = logging.getLogger(__name__)


class LazyToolServer:
    """Looks like a `ToolServer`. It can report what is missing before its tools are built."""

    def __init__(
        self,
        listing: ToolListing,
        build: Callable[[], ToolServer],
        readiness: Readiness | None,
        *,
        soon_seconds: float | None = None,
    ) -> None:
        """With `soon_seconds`, the tools are built that long after they were listed, even without a call."""
        self.name = listing.name
        self.keep_out_of_logs: Callable[[Iterable[str]], None] | None = None
        self._listing, self._build = listing, build
        self._readiness = None if readiness is None else ReadinessTool(readiness)
        self._soon_seconds = soon_seconds
        self._server: ToolServer | None = None
        methods = {
            "tools/list": MethodEntry(types.PaginatedRequestParams, self._list),
            "tools/call": MethodEntry(types.CallToolRequestParams, self._call),
        }
        self.protocol = MethodRegistry(listing.name, __version__, listing.instructions, methods)

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()

    async def _list(self, context: Context, params: types.PaginatedRequestParams) -> JsonObject:
        if self._soon_seconds is not None:
            asyncio.get_running_loop().call_later(self._soon_seconds, self._build_early)
            self._soon_seconds = None
        return self._listing.result()

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        call = read_call(context.meta, context.session.report_progress)
        with use_trace(accept_trace(call.trace_id)):
            try:
                if params.name == READINESS and self._server is None and self._readiness is not None:
                    return success(await self._readiness.readiness(), MAX_RESULT_BYTES)
                server = self._build_server()
            except Exception as error:  # noqa: BLE001  the edge: the caller gets a sentence, the log the traceback
                return to_failure(error, self.name, params.name)
            return await server.call(context, params)

    def _build_early(self) -> None:
        try:
            self._build_server()
        except Exception as error:  # noqa: BLE001  whoever calls is told, and the log then has the traceback
            _log.warning("%s cannot be built yet: %s", self.name, type(error).__name__)

    def _build_server(self) -> ToolServer:
        if self._server is None:
            self._server = self._build()
            self._server.keep_out_of_logs = self.keep_out_of_logs
        return self._server


MAX_FRAME_BYTES = 64_000_000


class _AsyncClosing:
    """The `async with` the SDK's streams have."""

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None


class FrameWriter(_AsyncClosing):
    """Writes each message as one line; waits when the other side does not read."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, item: SessionMessage, /) -> None:
        await self.write(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    async def write(self, line: str) -> None:
        with contextlib.suppress(ConnectionError):  # the other side is gone: reading will end too, and stop the server
            self._writer.write(line.encode() + b"\n")
            await self._writer.drain()


class FrameReader(_AsyncClosing):
    """Reads one message per line until the other side hangs up. A line that is no message is answered, not obeyed."""

    def __init__(self, reader: asyncio.StreamReader, writer: FrameWriter) -> None:
        self._reader, self._writer = reader, writer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        while True:
            try:
                line = await self._reader.readline()
            except ValueError:
                _log.error("a message of more than %d bytes was dropped", MAX_FRAME_BYTES)
                continue
            if not line:
                raise StopAsyncIteration
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValidationError:
                if line.strip():
                    await self._refuse(line)

    async def receive(self) -> SessionMessage:
        return await self.__anext__()

    async def _refuse(self, line: bytes) -> None:
        """Answer a request that is not valid text: its id can still be read."""
        _log.warning("a line that is no JSON-RPC message was dropped")
        try:
            frame: object = json.loads(line.decode("utf-8", errors="replace"))
        except (ValueError, RecursionError):
            return
        identity = cast("dict[str, object]", frame).get("id") if isinstance(frame, dict) else None
        if isinstance(identity, int | str):
            error = ErrorData(code=INVALID_REQUEST, message="The request is not valid JSON-RPC in UTF-8.")
            answer = JSONRPCError(jsonrpc="2.0", id=identity, error=error)
            await self._writer.write(answer.model_dump_json(by_alias=True, exclude_unset=True))


Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


@contextlib.asynccontextmanager
async def standard_pipes() -> AsyncGenerator[Streams]:
    """The two streams of this process. A file or a console instead of a pipe is served by the SDK's own transport."""
    streams = None if sys.platform == "win32" else await _claim_stdio()
    if streams is None:
        async with stdio_server() as (read_stream, write_stream):
            yield read_stream, write_stream
        return
    yield streams


async def _claim_stdio() -> Streams | None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_FRAME_BYTES, loop=loop)
    incoming, outgoing = os.dup(0), os.dup(1)
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0))
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop)), os.fdopen(outgoing, "wb", 0)
        )
    except ValueError:
        return None
    _divert_stdio()
    writer = FrameWriter(asyncio.StreamWriter(transport, protocol, None, loop))
    return cast("Streams", (FrameReader(reader, writer), writer))


def _divert_stdio() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)


_LEVELS = ("debug", "info", "warning", "error")

C = TypeVar("C")

SOON_SECONDS = 2.0
"""After this time the start of Annabelle is over and no longer competes for the processor."""

CLOSE_SECONDS = 10.0
"""How long a server may take to close. Whoever stops it may kill it earlier."""


class RunnableServer(Protocol):
    """What a process needs of the server it runs."""

    name: str
    protocol: MethodRegistry
    keep_out_of_logs: Callable[[Iterable[str]], None] | None

    async def close(self) -> None: ...


def run(build: Callable[[], RunnableServer]) -> None:
    """Run a server process. What keeps it from starting is one sentence on stderr and an exit code."""
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
        asyncio.run(serve_stdio(server))


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
    run(lambda: _build_listed(package, settings(), readiness, SOON_SECONDS if in_every_message else None))


def _build_listed(
    package: str, config: C, readiness: Callable[[C], Readiness] | None, soon_seconds: float | None
) -> RunnableServer:
    def build_server() -> ToolServer:
        made = cast("Callable[[C], ToolServer]", importlib.import_module(f"{package}.server").build)
        return made(config)

    listing = read_listing(package)
    if listing is not None:
        ask = None if readiness is None else readiness(config)
        return LazyToolServer(listing, build_server, ask, soon_seconds=soon_seconds)
    server = build_server()
    if not sys.dont_write_bytecode:
        write_listing(package, server)
    return server


async def serve_stdio(server: RunnableServer) -> None:
    """Answer requests until standard input ends."""
    async with standard_pipes() as (read_stream, write_stream):
        _log.debug("%s serves", server.name)
        try:
            await server.protocol.serve(read_stream, write_stream)
        finally:
            await _close_server(server)


async def _close_server(server: RunnableServer) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await server.close()
    except (TimeoutError, AnnabelleError) as error:
        _log.warning("%s was not closed properly: %s", server.name, error or "it took too long")


def own_settings() -> Settings:
    """What this process's environment says. A variable the manifest does not name never reaches the process, so
    every setting of other servers, their secrets above all, reads as its default here."""
    return read_settings()
