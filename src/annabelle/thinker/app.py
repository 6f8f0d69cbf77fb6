"""The thinker's HTTP API: the endpoints of `core.contract`, open to the hub only (THK-01, THK-05)."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from annabelle.core.contract import (
    TOKEN_HEADER,
    TRACE_HEADER,
    ClearSession,
    ExtractBrief,
    TidyBrief,
    TurnAccepted,
    TurnBrief,
)
from annabelle.core.errors import AnnabelleError, InvalidArguments, NotAllowed, TooLarge, Unauthorized, first_problem
from annabelle.core.trace import accept_trace, current_trace, use_trace
from annabelle.thinker.assembly import Thinker


def model_response(model: BaseModel, status: int = 200) -> Response:
    return Response(
        model.model_dump_json(), status_code=status, media_type="application/json", headers=_trace_headers()
    )


def error_response(error: AnnabelleError) -> Response:
    body = error.body(current_trace()).model_dump(exclude_none=True)
    return JSONResponse({"error": body}, status_code=error.http_status, headers=_trace_headers())


async def read_body(request: Request, most: int) -> bytes:
    """The request's body, refused as soon as it grows too large."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise TooLarge(f"The body is larger than {most} bytes.")
        chunks.append(chunk)
    return b"".join(chunks)


def read_number(request: Request, name: str, most: float) -> float:
    """A query parameter that is a number from 0 to `most`; absent means 0."""
    text = request.query_params.get(name, "0")
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise InvalidArguments(f"{name} must be a number from 0 to {most:g}.", field=name)
    return number


def _trace_headers() -> dict[str, str]:
    trace = current_trace()
    return {TRACE_HEADER: trace} if trace else {}


_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


class RequireHubSecret:
    """Wraps the whole application, so that no endpoint can be forgotten."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self._app, self._secret = app, secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            problem = self._find_problem(Headers(scope=scope))
            if problem is not None:
                await error_response(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _find_problem(self, headers: Headers) -> AnnabelleError | None:
        host = headers.get("host", "")
        if host.rpartition(":")[0] not in _LOOPBACK and host not in _LOOPBACK:
            return NotAllowed("This address is not served here.")
        offered = headers.get(TOKEN_HEADER, "").encode()
        if not self._secret or not secrets.compare_digest(offered, self._secret):
            return Unauthorized("Only the hub that started this thinker may call it.")
        return None


_BODY_BYTES = 20_000_000
_MAX_WAIT_SECONDS = 600

M = TypeVar("M", bound=BaseModel)
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(secret: str, thinker: Thinker) -> ASGIApp:
    """The application, ready to listen before the mind is: until then `/health` answers 503 (AGT-02)."""
    endpoints = _Endpoints(thinker)
    routes = [
        Route("/health", _handle_errors(endpoints.health), methods=["GET"]),
        Route("/process-message", _handle_errors(endpoints.process), methods=["POST"]),
        Route("/process-task", _handle_errors(endpoints.process), methods=["POST"]),
        Route("/turns/{message_id}", _handle_errors(endpoints.turn), methods=["GET"]),
        Route("/turns/{message_id}/events", _handle_errors(endpoints.events), methods=["GET"]),
        Route("/turns/{message_id}/cancel", _handle_errors(endpoints.cancel), methods=["POST"]),
        Route("/extract-facts", _handle_errors(endpoints.extract_facts), methods=["POST"]),
        Route("/tidy-facts", _handle_errors(endpoints.tidy_facts), methods=["POST"]),
        Route("/cost-status", _handle_errors(endpoints.cost_status), methods=["GET"]),
        Route("/cost-resume", _handle_errors(endpoints.cost_status), methods=["POST"]),
        Route("/clear-session", _handle_errors(endpoints.clear_session), methods=["POST"]),
    ]
    return RequireHubSecret(Starlette(routes=routes), secret)


class _Endpoints:
    def __init__(self, thinker: Thinker) -> None:
        self._thinker = thinker

    async def health(self, request: Request) -> Response:
        thinker = self._thinker
        thinker.require_ready()
        return JSONResponse(
            {
                "status": "ok",
                "agent_id": thinker.profile.agent_id,
                "turns": thinker.running_turns,
                "persona": thinker.persona_source,
                "thinking": thinker.compressor.status(),
                "providers": [provider.to_json() for provider in thinker.providers],
            }
        )

    async def process(self, request: Request) -> Response:
        self._thinker.require_ready()
        brief = _parse_body(TurnBrief, await read_body(request, _BODY_BYTES))
        wait = read_number(request, "wait", _MAX_WAIT_SECONDS)
        state = await self._thinker.turns.accept(brief)
        if not wait:
            return model_response(TurnAccepted(message_id=brief.message_id, state=state.state), 202)
        return model_response(await self._thinker.turns.state(brief.message_id, wait))

    async def turn(self, request: Request) -> Response:
        self._thinker.require_ready()
        wait = read_number(request, "wait", _MAX_WAIT_SECONDS)
        return model_response(await self._thinker.turns.state(_message_id(request), wait))

    async def events(self, request: Request) -> Response:
        self._thinker.require_ready()
        after = int(read_number(request, "after", 2**53))
        stream = await self._thinker.turns.stream(_message_id(request))
        lines = stream.lines(after, request.query_params.get("stream"))
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def cancel(self, request: Request) -> Response:
        self._thinker.require_ready()
        return model_response(await self._thinker.turns.cancel(_message_id(request)))

    async def extract_facts(self, request: Request) -> Response:
        self._thinker.require_ready()
        brief = _parse_body(ExtractBrief, await read_body(request, _BODY_BYTES))
        return model_response(await self._thinker.learning.extract(brief))

    async def tidy_facts(self, request: Request) -> Response:
        self._thinker.require_ready()
        brief = _parse_body(TidyBrief, await read_body(request, _BODY_BYTES))
        return model_response(await self._thinker.learning.tidy(brief))

    async def cost_status(self, request: Request) -> Response:
        self._thinker.require_ready()
        return JSONResponse(await self._thinker.costs.fetch_status())

    async def clear_session(self, request: Request) -> Response:
        self._thinker.require_ready()
        wanted = _parse_body(ClearSession, await read_body(request, _BODY_BYTES))
        await self._thinker.sessions.clear(wanted.thread_id)
        return JSONResponse({"cleared": wanted.thread_id})


def _handle_errors(endpoint: Endpoint) -> Endpoint:
    """The edge of the process: a trace around every request, and every error in the one shape."""

    async def handle_request(request: Request) -> Response:
        with use_trace(accept_trace(request.headers.get(TRACE_HEADER))):
            try:
                return await endpoint(request)
            except AnnabelleError as error:
                return error_response(error)

    return handle_request


def _message_id(request: Request) -> str:
    return str(request.path_params["message_id"])


def _parse_body(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        place, reason = first_problem(error, "body")
        raise InvalidArguments(f"{place}: {reason}.", field=place) from error
