"""JSON-RPC over a server's pipes: requests by id, cancellation, notifications, and calm about garbage."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import pydantic_core

from annabelle.core.tools import JsonObject
from annabelle.toolbox.protocol.errors import AnswerTooLarge, ConnectionLost, RpcError
from annabelle.toolbox.protocol.lines import LineBuffer, Oversized
from annabelle.toolbox.protocol.pipes import Pipes

_log = logging.getLogger(__name__)

_METHOD_NOT_FOUND = -32601
_ID = re.compile(rb'"id"\s*:\s*(\d+)')
_RESULT_FIRST = re.compile(rb'^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+)')

PIPES_CLOSED = "it closed its pipes"

OnNotification = Callable[[str, JsonObject], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """A result, and how many bytes it had on the wire."""

    result: JsonObject
    size: int


class Rpc:
    """One conversation. It ends once: every request that is still open then fails with ConnectionLost."""

    def __init__(self, name: str, limit: int, on_notification: OnNotification) -> None:
        self._name, self._limit = name, limit
        self._lines = LineBuffer(limit)
        self._on_notification = on_notification
        self._open: dict[int, asyncio.Future[Answer]] = {}
        self._next_id = 0
        self._pipes: Pipes | None = None
        self._in_garbage = False
        self.garbage_lines = 0
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open(self, stdin: int, stdout: int) -> None:
        self._pipes = await Pipes.open(stdin, stdout, self._on_data, lambda: self.end(PIPES_CLOSED))

    async def send(self, method: str, params: JsonObject | None) -> tuple[int, asyncio.Future[Answer]]:
        """Write a request; what comes back is its id and the promise of its answer."""
        if self.ended.done():
            raise ConnectionLost(self.ended.result(), sent=False)
        if self._pipes is None:
            raise ConnectionLost("it is not running", sent=False)
        self._next_id += 1
        number = self._next_id
        line = _encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        await self._pipes.write(line)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[number] = answer
        return number, answer

    async def wait(self, number: int, answer: asyncio.Future[Answer], *, cancellable: bool = True) -> Answer:
        """The answer to a request. Whoever stops waiting cancels the request at the server too."""
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

    def hang_up(self) -> None:
        if self._pipes is not None:
            self._pipes.hang_up()

    def end(self, reason: str) -> None:
        """Finish the conversation; only the first reason counts."""
        if self.ended.done():
            return
        self.ended.set_result(reason)
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(ConnectionLost(reason, sent=True))
                answer.exception()  # looked at: nobody waits for the answer to a subscription
        if self._pipes is not None:
            self._pipes.close()

    def _on_data(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            if isinstance(line, Oversized):
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
            answer.set_result(Answer(cast("JsonObject", result) if isinstance(result, dict) else {}, size))

    def _on_request(self, method: str, number: object) -> None:
        """Servers of older revisions may ask us things. We offer nothing to ask for, except that we are alive."""
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
            _log.warning("%s printed something that is no message: %r", self._name, excerpt)
        self._in_garbage = True

    def _on_oversized(self, line: Oversized) -> None:
        found = _RESULT_FIRST.search(line.head) or _last(_ID, line.tail)
        number = int(found.group(1)) if found else None
        if number not in self._open and len(self._open) == 1 and b'"jsonrpc"' in line.head + line.tail:
            number = next(iter(self._open))
        answer = self._open.get(number) if number is not None else None
        if answer is None:
            self._on_garbage(line.head[:200].decode(errors="replace"))
        elif not answer.done():
            answer.set_exception(AnswerTooLarge(line.size, self._limit))


def _last(pattern: re.Pattern[bytes], text: bytes) -> re.Match[bytes] | None:
    found = None
    for match in pattern.finditer(text):
        found = match
    return found


def _encode(message: JsonObject) -> bytes:
    # ASCII only: a lone surrogate in an argument must not break the stream.
    return json.dumps(message, separators=(",", ":"), default=str).encode("ascii") + b"\n"
