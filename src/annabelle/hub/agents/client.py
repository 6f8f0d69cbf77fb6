"""The hub's side of the contract with a thinker; every request may be repeated."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus

import httpx2 as httpx

from annabelle.core.contract import TOKEN_HEADER, TRACE_HEADER, StreamedEvent, TurnAccepted, TurnBrief, TurnState
from annabelle.core.errors import ErrorBody, Unavailable

_READY_POLL_SECONDS = 0.02
_LONG_WAIT_SECONDS = 30.0
_SILENCE_SECONDS = 60.0


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
        self._http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={TOKEN_HEADER: secret},
            timeout=httpx.Timeout(10, read=60),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,  # loopback never goes through a proxy
        )

    async def ready(self, timeout: float) -> None:
        """Wait until the agent can take messages."""
        async with asyncio.timeout(timeout):
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if (await self._http.get("/health")).status_code == HTTPStatus.OK:
                        return
                await asyncio.sleep(_READY_POLL_SECONDS)

    async def begin(self, brief: TurnBrief) -> TurnAccepted:
        """Hand a message over. A repeat finds the same turn."""
        response = await self._send("POST", "/process-message", brief.trace_id, content=brief.model_dump_json())
        return TurnAccepted.model_validate_json(response.content)

    async def events(self, brief: TurnBrief, after: int, stream: str | None) -> AsyncIterator[StreamedEvent]:
        """What happens in the turn, from behind event `after`, until the turn is over or silent for long."""
        params = {"after": str(after)} | ({"stream": stream} if stream is not None else {})
        try:
            async with self._http.stream(
                "GET",
                f"/turns/{brief.message_id}/events",
                params=params,
                headers={TRACE_HEADER: brief.trace_id},
                timeout=httpx.Timeout(10, read=_SILENCE_SECONDS),
            ) as response:
                if response.status_code != HTTPStatus.OK:
                    await response.aread()
                    raise _refusal(response)
                async for line in response.aiter_lines():
                    if line:
                        yield StreamedEvent.model_validate_json(line)
        except httpx.ReadTimeout:
            return  # a model may think for long: the caller looks how the turn stands, and follows on
        except httpx.TransportError as error:
            raise ThinkerGone("The agent stopped in the middle of a turn.") from error

    async def state(self, message_id: str, wait: float = _LONG_WAIT_SECONDS) -> TurnState:
        """How the turn stands; waits for its end, but not for ever."""
        response = await self._send("GET", f"/turns/{message_id}", None, params={"wait": f"{wait:g}"})
        return TurnState.model_validate_json(response.content)

    async def cancel(self, message_id: str) -> None:
        await self._send("POST", f"/turns/{message_id}/cancel", None)

    async def resume_costs(self, reset_window: bool) -> None:
        await self._send("POST", "/cost-resume", None, json={"resetWindow": reset_window})

    async def _send(
        self,
        method: str,
        path: str,
        trace_id: str | None,
        *,
        content: str | None = None,
        json: dict[str, bool] | None = None,
        params: dict[str, str] | None = None,
    ) -> httpx.Response:
        headers = {TRACE_HEADER: trace_id} if trace_id is not None else {}
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = await self._http.request(
                method, path, content=content, json=json, params=params, headers=headers
            )
        except httpx.TransportError as error:
            raise ThinkerGone("The agent does not answer.") from error
        if response.is_error:
            raise _refusal(response)
        return response

    async def close(self) -> None:
        await self._http.aclose()


def _refusal(response: httpx.Response) -> ThinkerRefused | ThinkerGone:
    try:
        body = ErrorBody.model_validate(response.json()["error"])
        said, hint = body.message, body.hint
    except (ValueError, KeyError, TypeError):
        said, hint = f"The agent answered {response.status_code}.", None
    kind = ThinkerGone if response.status_code == HTTPStatus.SERVICE_UNAVAILABLE else ThinkerRefused
    return kind(said, hint=hint)
