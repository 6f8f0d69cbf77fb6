"""MCP over standard input and output without a thread per line.

Frames go straight between the pipe and the SDK's dispatcher. What the process prints, or a child reads, can not get
between them: while serving, descriptor 0 is the null device and 1 is stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self, cast

from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

_log = logging.getLogger(__name__)

MAX_FRAME_BYTES = 64_000_000


class _Closing:
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


class FrameWriter(_Closing):
    """Writes each message as one line; waits when the other side does not read."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, item: SessionMessage, /) -> None:
        await self.write(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    async def write(self, line: str) -> None:
        with contextlib.suppress(ConnectionError):  # the other side is gone: reading will end too, and stop the server
            self._writer.write(line.encode() + b"\n")
            await self._writer.drain()


class FrameReader(_Closing):
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
        """Whoever waits for an answer gets one: a request with half a character in it still has a readable id."""
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
    streams = None if sys.platform == "win32" else await _claim()
    if streams is None:
        async with stdio_server() as (read_stream, write_stream):
            yield read_stream, write_stream
        return
    yield streams


async def _claim() -> Streams | None:
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
    _divert()
    writer = FrameWriter(asyncio.StreamWriter(transport, protocol, None, loop))
    return cast("Streams", (FrameReader(reader, writer), writer))


def _divert() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
