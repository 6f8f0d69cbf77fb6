"""The hub's client for one thinker process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from urllib.parse import quote

from pydantic import ValidationError

from annabelle.core.contract import (
    TOKEN_HEADER,
    TRACE_HEADER,
    ClearSession,
    ExtractBrief,
    ExtractResult,
    OrderBrief,
    OrderVerdict,
    StreamedEvent,
    SummaryBrief,
    SummaryResult,
    TidyBrief,
    TidyFactsResult,
    TurnAccepted,
    TurnBrief,
    TurnState,
)
from annabelle.core.errors import ErrorBody, Unavailable
from annabelle.core.loopback_http import HttpReply, LoopbackHttpClient

_READY_POLL_SECONDS = 0.02
_REQUEST_SECONDS = 60.0
_LONG_WAIT_SECONDS = 30.0
_SILENCE_SECONDS = 60.0
# One whole model call; the thinker itself gives up earlier.
_LEARNING_SECONDS = 600.0


class ThinkerGone(Unavailable):
    """The thinker does not answer: it has died or is dying."""

    code = "agent_gone"


class ThinkerRefused(Unavailable):
    """The thinker answered with an error."""

    code = "agent_refused"


class ThinkerClient:
    """Client of one thinker process, for the lifetime of that process."""

    def __init__(self, port: int, secret: str) -> None:
        self.port = port
        self._http = LoopbackHttpClient("127.0.0.1", port, {TOKEN_HEADER: secret, "Content-Type": "application/json"})

    async def wait_ready(self, timeout: float) -> None:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    if (await self._http.request("GET", "/health", {}, timeout=timeout)).status == HTTPStatus.OK:
                        return
                except OSError:
                    pass
                await asyncio.sleep(_READY_POLL_SECONDS)

    async def begin(self, brief: TurnBrief) -> TurnAccepted:
        """Start the turn of a message. Idempotent."""
        reply = await self._send("POST", "/process-message", brief.model_dump_json().encode(), brief.trace_id)
        return TurnAccepted.model_validate_json(reply.body)

    async def events(self, brief: TurnBrief, after: int, stream: str | None) -> AsyncIterator[StreamedEvent]:
        """Events of the turn after number `after`, until the turn ends or is silent for a long time."""
        path = f"/turns/{brief.message_id}/events?after={after}" + (f"&stream={quote(stream)}" if stream else "")
        try:
            async for status, line in self._http.stream_lines(path, {TRACE_HEADER: brief.trace_id}, _SILENCE_SECONDS):
                if status != HTTPStatus.OK:
                    raise _refusal(HttpReply(status, body=line))
                if line:
                    yield StreamedEvent.model_validate_json(line)
        except TimeoutError:
            return  # a model may take long: the caller checks the turn and continues reading
        except (OSError, ValidationError) as error:
            raise ThinkerGone("The agent stopped in the middle of a turn.") from error

    async def state(self, message_id: str, wait: float = _LONG_WAIT_SECONDS) -> TurnState:
        """State of the turn. Waits up to `wait` seconds for its end."""
        reply = await self._send("GET", f"/turns/{message_id}?wait={wait:g}")
        return TurnState.model_validate_json(reply.body)

    async def cancel(self, message_id: str) -> None:
        await self._send("POST", f"/turns/{message_id}/cancel")

    async def extract(self, brief: ExtractBrief) -> ExtractResult:
        """Facts learned from a conversation. The same id returns the same answer."""
        body = brief.model_dump_json().encode()
        reply = await self._send("POST", "/extract-facts", body, brief.trace_id, _LEARNING_SECONDS)
        return ExtractResult.model_validate_json(reply.body)

    async def tidy(self, brief: TidyBrief) -> TidyFactsResult:
        """Suggestions for merging facts. The same id returns the same answer."""
        body = brief.model_dump_json().encode()
        reply = await self._send("POST", "/tidy-facts", body, brief.trace_id, _LEARNING_SECONDS)
        return TidyFactsResult.model_validate_json(reply.body)

    async def read_order(self, brief: OrderBrief) -> OrderVerdict:
        body = brief.model_dump_json().encode()
        reply = await self._send("POST", "/read-order", body, brief.trace_id, _LEARNING_SECONDS)
        return OrderVerdict.model_validate_json(reply.body)

    async def summarise(self, brief: SummaryBrief) -> SummaryResult:
        """What a text says. The same id returns the same answer."""
        body = brief.model_dump_json().encode()
        reply = await self._send("POST", "/summarise", body, brief.trace_id, _LEARNING_SECONDS)
        return SummaryResult.model_validate_json(reply.body)

    async def clear_session(self, wanted: ClearSession) -> None:
        """Archive the session of a thread and start a new one, or remove turns. A new session stays as it is."""
        await self._send("POST", "/clear-session", wanted.model_dump_json().encode())

    async def resume_costs(self, reset_window: bool) -> None:
        await self._send("POST", "/cost-resume", json.dumps({"resetWindow": reset_window}).encode())

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        trace_id: str | None = None,
        timeout: float = _REQUEST_SECONDS,
    ) -> HttpReply:
        headers = {TRACE_HEADER: trace_id} if trace_id is not None else {}
        try:
            reply = await self._http.request(method, path, headers, body, timeout)
        except OSError as error:  # includes TimeoutError
            raise ThinkerGone("The agent does not answer.") from error
        if reply.status >= HTTPStatus.BAD_REQUEST:
            raise _refusal(reply)
        return reply

    def close(self) -> None:
        self._http.close()


def _refusal(reply: HttpReply) -> ThinkerRefused | ThinkerGone:
    try:
        body = ErrorBody.model_validate(json.loads(reply.body)["error"])
        said, hint = body.message, body.hint
    except (ValueError, KeyError, TypeError):
        said, hint = f"The agent answered {reply.status}.", None
    kind = ThinkerGone if reply.status == HTTPStatus.SERVICE_UNAVAILABLE else ThinkerRefused
    return kind(said, hint=hint)
