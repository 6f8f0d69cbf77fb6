"""The hub's client for one thinker process, over a small HTTP/1.1 client for loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

from pydantic import ValidationError

from annabelle.core.contract import (
    TOKEN_HEADER,
    TRACE_HEADER,
    ClearSession,
    ExtractBrief,
    ExtractResult,
    StreamedEvent,
    TidyBrief,
    TidyFactsResult,
    TurnAccepted,
    TurnBrief,
    TurnState,
)
from annabelle.core.errors import ErrorBody, Unavailable

_CONNECT_SECONDS = 10.0
_MAX_IDLE = 32
_READ_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class ThinkerReply:
    """A whole answer."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _ThinkerReplyHead:
    status: int
    headers: dict[bytes, bytes]


class _ThinkerConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @property
    def usable(self) -> bool:
        return not self._writer.is_closing() and not self._reader.at_eof()

    async def send_request(self, request: bytes, timeout: float) -> _ThinkerReplyHead:
        self._writer.write(request)
        async with asyncio.timeout(timeout):
            lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        pairs = (line.split(b":", 1) for line in lines[1:] if line)
        return _ThinkerReplyHead(
            int(lines[0].split(b" ", 2)[1]), {name.lower(): value.strip() for name, value in pairs}
        )

    async def read_chunks(self, head: _ThinkerReplyHead, silence: float) -> AsyncIterator[bytes]:
        """The body as it comes; a TimeoutError when nothing does for long."""
        if head.headers.get(b"transfer-encoding", b"").lower() != b"chunked":
            length = int(head.headers.get(b"content-length", b"0"))
            if length:
                async with asyncio.timeout(silence):
                    yield await self._reader.readexactly(length)
            return
        while True:
            async with asyncio.timeout(silence):
                size = int((await self._reader.readline()).split(b";")[0], 16)
                chunk = await self._reader.readexactly(size + 2)
            if not size:
                return
            yield chunk[:-2]

    def close(self) -> None:
        self._writer.close()


class ThinkerHttpClient:
    """Requests to one port. Raises OSError (also for a broken answer) and TimeoutError, nothing else."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._port = port
        self._head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._idle: list[_ThinkerConnection] = []
        self._closed = False

    async def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b"", timeout: float = 60
    ) -> ThinkerReply:
        connection, head = await self._open(method, path, headers, body, timeout)
        whole = False
        try:
            with _broken_is_os_error():
                answer = b"".join([chunk async for chunk in connection.read_chunks(head, timeout)])
            whole = True
        finally:
            self._return_to_pool(connection, whole)
        return ThinkerReply(head.status, answer)

    async def stream_lines(
        self, path: str, headers: dict[str, str], silence: float
    ) -> AsyncIterator[tuple[int, bytes]]:
        """The lines of a streamed answer, each with the answer's status."""
        connection, head = await self._open("GET", path, headers, b"", silence)
        rest, whole = b"", False
        try:
            with _broken_is_os_error():
                async for chunk in connection.read_chunks(head, silence):
                    *ended, rest = (rest + chunk).split(b"\n")
                    for line in ended:
                        yield head.status, line
            if rest:
                yield head.status, rest
            whole = True
        finally:
            self._return_to_pool(connection, whole)

    async def _open(
        self, method: str, path: str, headers: dict[str, str], body: bytes, timeout: float
    ) -> tuple[_ThinkerConnection, _ThinkerReplyHead]:
        own = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        length = f"Content-Length: {len(body)}\r\n" if body or method == "POST" else ""
        request = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self._head}{own}{length}\r\n".encode() + body
        while True:
            kept = next((one for one in iter(self._pop_idle, None) if one.usable), None)
            connection = kept or await self._connect()
            try:
                with _broken_is_os_error():
                    return connection, await connection.send_request(request, timeout)
            except ConnectionError:
                connection.close()
                if kept is None:
                    raise
                # It was closed while it was kept: the next one, or a new one, tells whether the thinker lives.
            except BaseException:
                connection.close()
                raise

    def _pop_idle(self) -> _ThinkerConnection | None:
        return self._idle.pop() if self._idle else None

    async def _connect(self) -> _ThinkerConnection:
        if self._closed:
            raise ConnectionAbortedError("this client was closed")
        async with asyncio.timeout(_CONNECT_SECONDS):
            return _ThinkerConnection(*await asyncio.open_connection("127.0.0.1", self._port, limit=_READ_LIMIT))

    def _return_to_pool(self, connection: _ThinkerConnection, whole: bool) -> None:
        """Use a connection again, unless its answer was not read to the end."""
        if whole and connection.usable and len(self._idle) < _MAX_IDLE and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        self._closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()


@contextlib.contextmanager
def _broken_is_os_error() -> Generator[None]:
    """What a dying peer leaves behind, in one kind."""
    try:
        yield
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
        raise ConnectionError(f"the answer broke off: {error}") from error


_READY_POLL_SECONDS = 0.02
_REQUEST_SECONDS = 60.0
_LONG_WAIT_SECONDS = 30.0
_SILENCE_SECONDS = 60.0
# One whole model call; the thinker itself gives up earlier.
_LEARNING_SECONDS = 600.0


class ThinkerGone(Unavailable):
    """The thinker does not answer: it has died, or is about to."""

    code = "agent_gone"


class ThinkerRefused(Unavailable):
    """The thinker answered, and said no."""

    code = "agent_refused"


class ThinkerClient:
    """Speaks to one thinker process, until that process ends."""

    def __init__(self, port: int, secret: str) -> None:
        self.port = port
        self._http = ThinkerHttpClient(port, {TOKEN_HEADER: secret, "Content-Type": "application/json"})

    async def wait_ready(self, timeout: float) -> None:
        """Wait until the agent can take messages."""
        async with asyncio.timeout(timeout):
            while True:
                try:
                    if (await self._http.request("GET", "/health", {}, timeout=timeout)).status == HTTPStatus.OK:
                        return
                except OSError:
                    pass
                await asyncio.sleep(_READY_POLL_SECONDS)

    async def begin(self, brief: TurnBrief) -> TurnAccepted:
        """Hand a message over. A repeat finds the same turn."""
        reply = await self._send("POST", "/process-message", brief.model_dump_json().encode(), brief.trace_id)
        return TurnAccepted.model_validate_json(reply.body)

    async def events(self, brief: TurnBrief, after: int, stream: str | None) -> AsyncIterator[StreamedEvent]:
        """What happens in the turn, from behind event `after`, until the turn is over or silent for long."""
        path = f"/turns/{brief.message_id}/events?after={after}" + (f"&stream={quote(stream)}" if stream else "")
        try:
            async for status, line in self._http.stream_lines(path, {TRACE_HEADER: brief.trace_id}, _SILENCE_SECONDS):
                if status != HTTPStatus.OK:
                    raise _refusal(ThinkerReply(status, line))
                if line:
                    yield StreamedEvent.model_validate_json(line)
        except TimeoutError:
            return  # a model may think for long: the caller looks how the turn stands, and follows on
        except (OSError, ValidationError) as error:
            raise ThinkerGone("The agent stopped in the middle of a turn.") from error

    async def state(self, message_id: str, wait: float = _LONG_WAIT_SECONDS) -> TurnState:
        """How the turn stands; waits for its end, but not for ever."""
        reply = await self._send("GET", f"/turns/{message_id}?wait={wait:g}")
        return TurnState.model_validate_json(reply.body)

    async def cancel(self, message_id: str) -> None:
        await self._send("POST", f"/turns/{message_id}/cancel")

    async def extract(self, brief: ExtractBrief) -> ExtractResult:
        """What a conversation taught. The same id again finds the same answer."""
        body = brief.model_dump_json().encode()
        reply = await self._send("POST", "/extract-facts", body, brief.trace_id, _LEARNING_SECONDS)
        return ExtractResult.model_validate_json(reply.body)

    async def tidy(self, brief: TidyBrief) -> TidyFactsResult:
        """How facts might be merged. The same id again finds the same answer."""
        body = brief.model_dump_json().encode()
        reply = await self._send("POST", "/tidy-facts", body, brief.trace_id, _LEARNING_SECONDS)
        return TidyFactsResult.model_validate_json(reply.body)

    async def clear_session(self, thread_id: str) -> None:
        """Archive what was said in a thread and start afresh; one that is fresh stays so."""
        await self._send("POST", "/clear-session", ClearSession(thread_id=thread_id).model_dump_json().encode())

    async def resume_costs(self, reset_window: bool) -> None:
        await self._send("POST", "/cost-resume", json.dumps({"resetWindow": reset_window}).encode())

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        trace_id: str | None = None,
        timeout: float = _REQUEST_SECONDS,
    ) -> ThinkerReply:
        headers = {TRACE_HEADER: trace_id} if trace_id is not None else {}
        try:
            reply = await self._http.request(method, path, headers, body, timeout)
        except OSError as error:  # a timeout is one of them
            raise ThinkerGone("The agent does not answer.") from error
        if reply.status >= HTTPStatus.BAD_REQUEST:
            raise _refusal(reply)
        return reply

    def close(self) -> None:
        self._http.close()


def _refusal(reply: ThinkerReply) -> ThinkerRefused | ThinkerGone:
    try:
        body = ErrorBody.model_validate(json.loads(reply.body)["error"])
        said, hint = body.message, body.hint
    except (ValueError, KeyError, TypeError):
        said, hint = f"The agent answered {reply.status}.", None
    kind = ThinkerGone if reply.status == HTTPStatus.SERVICE_UNAVAILABLE else ThinkerRefused
    return kind(said, hint=hint)
