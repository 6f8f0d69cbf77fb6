"""JSON-RPC over a server's pipes: requests by id, cancellation, notifications, and the errors of the wire."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import pydantic_core

from annabelle.core.tools import JsonObject


class WireError(Exception):
    """Base class of errors between hub and server."""


class ConnectionLost(WireError):
    """The server is gone. `sent`: the request may have reached it."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class RpcError(WireError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class AnswerTooLarge(WireError):
    """The server's answer exceeded the message limit and was dropped while it was read."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the answer had {size} bytes, more than the {limit} that are read")
        self.size = size
        self.limit = limit


class ProtocolMismatch(WireError):
    """The server shares no protocol revision with us."""


_HIGH_WATER = 1_000_000
"""Bytes that may be unread by a server; beyond that callers wait, up to their own time limit."""


class _PipeReader(asyncio.Protocol):
    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_data, self._on_end = on_data, on_end

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class _PipeWriter(asyncio.BaseProtocol):
    def __init__(self, on_end: Callable[[], None]) -> None:
        self.writable = asyncio.Event()
        self.writable.set()
        self._on_end = on_end
        self.input_closed = False

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.writable.set()
        if not self.input_closed:  # after we close its input, the server may still write
            self._on_end()


class ServerPipes:
    """The pipes to and from one server. Owns both descriptors from the call of `open`."""

    def __init__(self, reader: asyncio.ReadTransport, writer: asyncio.WriteTransport, writing: _PipeWriter) -> None:
        self._reader, self._writer, self._writing = reader, writer, writing

    @classmethod
    async def open(
        cls, stdin: int, stdout: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> ServerPipes:
        """`stdin` is written to, `stdout` read from; `on_end` is called when either side is closed."""
        loop = asyncio.get_running_loop()
        writer, writing = await loop.connect_write_pipe(
            lambda: _PipeWriter(on_end), os.fdopen(stdin, "wb", buffering=0)
        )
        writer.set_write_buffer_limits(high=_HIGH_WATER)
        reader, _ = await loop.connect_read_pipe(
            lambda: _PipeReader(on_data, on_end), os.fdopen(stdout, "rb", buffering=0)
        )
        return cls(reader, writer, writing)

    async def write(self, line: bytes) -> None:
        """Write a line; waits while too much of the earlier output is unread."""
        if not self._writing.writable.is_set():
            await self._writing.writable.wait()
        if self._writer.is_closing():
            raise ConnectionLost("its input is closed", sent=False)
        self._writer.write(line)
        if self._writer.is_closing():  # the write found the pipe broken, so no byte arrived
            raise ConnectionLost("its input is closed", sent=False)

    def write_if_room(self, line: bytes) -> None:
        """Write a line that may be lost and is not worth waiting for."""
        if self._writing.writable.is_set() and not self._writer.is_closing():
            self._writer.write(line)

    def close_input(self) -> None:
        """Close the server's input, which asks it to end."""
        if not self._writer.is_closing():
            self._writing.input_closed = True
            self._writer.close()

    def close(self) -> None:
        self._writing.input_closed = True
        if not self._writer.is_closing():
            self._writer.abort()
        if not self._reader.is_closing():
            self._reader.close()


_EDGE = 400
"""Bytes kept from both ends of a dropped line: enough to find the id of its request."""


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """A line that was too long to keep."""

    head: bytes
    tail: bytes
    size: int


class LineBuffer:
    """Splits what was read into lines; a line over the limit becomes an `OversizedLine`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes | OversizedLine]:
        if b"\n" not in data:
            self._append(data)
            return []
        first, *rest = data.split(b"\n")
        self._append(first)
        lines: list[bytes | OversizedLine] = [self._finish_line()]
        for piece in rest[:-1]:
            self._append(piece)
            lines.append(self._finish_line())
        if rest[-1]:
            self._append(rest[-1])
        return lines

    def _append(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._head is None and self._size <= self._limit:
            self._parts.append(piece)
            return
        if self._head is None:
            self._head = b"".join([*self._parts, piece[:_EDGE]])[:_EDGE]
            self._parts.clear()
        self._tail = (self._tail + piece)[-_EDGE:]

    def _finish_line(self) -> bytes | OversizedLine:
        taken: bytes | OversizedLine
        if self._head is not None:
            taken = OversizedLine(self._head, self._tail, self._size)
        else:
            taken = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        self._size, self._head, self._tail = 0, None, b""
        return taken


_log = logging.getLogger(__name__)

_METHOD_NOT_FOUND = -32601
_ID = re.compile(rb'"id"\s*:\s*(\d+)')
_RESULT_FIRST = re.compile(rb'^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+)')

PIPES_CLOSED = "it closed its pipes"

OnNotification = Callable[[str, JsonObject], None]


@dataclass(frozen=True, slots=True)
class RpcAnswer:
    """A result, and how many bytes it had on the wire."""

    result: JsonObject
    size: int


class RpcClient:
    """A JSON-RPC connection. When it ends, every open request fails with ConnectionLost."""

    def __init__(self, name: str, limit: int, on_notification: OnNotification) -> None:
        self._name, self._limit = name, limit
        self._lines = LineBuffer(limit)
        self._on_notification = on_notification
        self._open: dict[int, asyncio.Future[RpcAnswer]] = {}
        self._next_id = 0
        self._pipes: ServerPipes | None = None
        self._in_garbage = False
        self.garbage_lines = 0
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open(self, stdin: int, stdout: int) -> None:
        self._pipes = await ServerPipes.open(stdin, stdout, self._on_data, lambda: self.end(PIPES_CLOSED))

    async def send(self, method: str, params: JsonObject | None) -> tuple[int, asyncio.Future[RpcAnswer]]:
        """Write a request. Returns its id and a future for its answer."""
        if self.ended.done():
            raise ConnectionLost(self.ended.result(), sent=False)
        if self._pipes is None:
            raise ConnectionLost("it is not running", sent=False)
        self._next_id += 1
        number = self._next_id
        line = _encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        await self._pipes.write(line)
        answer: asyncio.Future[RpcAnswer] = asyncio.get_running_loop().create_future()
        self._open[number] = answer
        return number, answer

    async def wait(self, number: int, answer: asyncio.Future[RpcAnswer], *, cancellable: bool = True) -> RpcAnswer:
        """Wait for the answer; cancelling the wait cancels the request at the server too."""
        try:
            return await answer
        except asyncio.CancelledError:
            if cancellable:
                self.notify("notifications/cancelled", {"requestId": number, "reason": "the caller stopped waiting"})
            raise
        finally:
            self._open.pop(number, None)

    async def request(self, method: str, params: JsonObject | None = None, *, cancellable: bool = True) -> JsonObject:
        number, answer = await self.send(method, params)
        return (await self.wait(number, answer, cancellable=cancellable)).result

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        if self._pipes is not None and not self.ended.done():
            body: JsonObject = {"jsonrpc": "2.0", "method": method}
            if params is not None:
                body["params"] = params
            self._pipes.write_if_room(_encode(body))

    def close_input(self) -> None:
        if self._pipes is not None:
            self._pipes.close_input()

    def end(self, reason: str) -> None:
        """End the connection; only the first reason counts."""
        if self.ended.done():
            return
        self.ended.set_result(reason)
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(ConnectionLost(reason, sent=True))
                answer.exception()  # marks it as retrieved: nobody awaits a subscription's answer
        if self._pipes is not None:
            self._pipes.close()

    def _on_data(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            if isinstance(line, OversizedLine):
                self._on_oversized(line)
            elif line and not line.isspace():
                self._on_line(line)

    def _on_line(self, line: bytes) -> None:
        try:
            parsed: object = pydantic_core.from_json(line)
        except ValueError:
            parsed = None
        message = cast("JsonObject", parsed) if isinstance(parsed, dict) else {}
        if message.get("jsonrpc") != "2.0":
            self._on_garbage(line[:200].decode(errors="replace"))
            return
        self._in_garbage = False
        method = message.get("method")
        if not isinstance(method, str):
            self._on_answer(message, len(line))
        elif "id" in message:
            self._on_request(method, message["id"])
        else:
            params = message.get("params")
            self._on_notification(method, cast("JsonObject", params) if isinstance(params, dict) else {})

    def _on_answer(self, message: JsonObject, size: int) -> None:
        number = message.get("id")
        answer = self._open.get(number) if isinstance(number, int) else None
        if answer is None or answer.done():
            return  # late: its caller stopped waiting
        error = message.get("error")
        if isinstance(error, dict):
            details = cast("JsonObject", error)
            code = details.get("code")
            answer.set_exception(
                RpcError(code if isinstance(code, int) else 0, str(details.get("message", "")), details.get("data"))
            )
        else:
            result = message.get("result")
            answer.set_result(RpcAnswer(cast("JsonObject", result) if isinstance(result, dict) else {}, size))

    def _on_request(self, method: str, number: object) -> None:
        """Servers of older revisions may send requests. Only `ping` is answered."""
        body: JsonObject = {"jsonrpc": "2.0", "id": number}
        if method == "ping":
            body["result"] = {}
        else:
            body["error"] = {"code": _METHOD_NOT_FOUND, "message": f"{method} is not offered by this client"}
        if self._pipes is not None:
            self._pipes.write_if_room(_encode(body))

    def _on_garbage(self, excerpt: str) -> None:
        self.garbage_lines += 1
        if not self._in_garbage:  # once per burst: a chatty server must not flood the hub's log
            _log.warning("%s printed something that is not a message: %r", self._name, excerpt)
        self._in_garbage = True

    def _on_oversized(self, line: OversizedLine) -> None:
        found = _RESULT_FIRST.search(line.head) or _find_last(_ID, line.tail)
        number = int(found.group(1)) if found else None
        if number not in self._open and len(self._open) == 1 and b'"jsonrpc"' in line.head + line.tail:
            number = next(iter(self._open))
        answer = self._open.get(number) if number is not None else None
        if answer is None:
            self._on_garbage(line.head[:200].decode(errors="replace"))
        elif not answer.done():
            answer.set_exception(AnswerTooLarge(line.size, self._limit))


def _find_last(pattern: re.Pattern[bytes], text: bytes) -> re.Match[bytes] | None:
    found = None
    for match in pattern.finditer(text):
        found = match
    return found


def _encode(message: JsonObject) -> bytes:
    # ASCII only: a lone surrogate in an argument must not break the stream.
    return json.dumps(message, separators=(",", ":"), default=str).encode("ascii") + b"\n"
