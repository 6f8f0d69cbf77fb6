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
    StreamedEvent,
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
    """The thinker does not answer: it has died, or is about to."""

    code = "agent_gone"


class ThinkerRefused(Unavailable):
    """The thinker answered, and said no."""

    code = "agent_refused"


class ThinkerClient:
    """Speaks to one thinker process, until that process ends."""

    def __init__(self, port: int, secret: str) -> None:
        self.port = port
        self._http = LoopbackHttpClient("127.0.0.1", port, {TOKEN_HEADER: secret, "Content-Type": "application/json"})

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
                    raise _refusal(HttpReply(status, body=line))
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
    ) -> HttpReply:
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


def _refusal(reply: HttpReply) -> ThinkerRefused | ThinkerGone:
    try:
        body = ErrorBody.model_validate(json.loads(reply.body)["error"])
        said, hint = body.message, body.hint
    except (ValueError, KeyError, TypeError):
        said, hint = f"The agent answered {reply.status}.", None
    kind = ThinkerGone if reply.status == HTTPStatus.SERVICE_UNAVAILABLE else ThinkerRefused
    return kind(said, hint=hint)
