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
    OrderBrief,
    SummaryBrief,
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
    """Read the body; raise TooLarge as soon as it exceeds `most` bytes."""
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
    """Wraps the whole application, so that no endpoint is left open."""

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
    """The application. It can listen before the thinker is ready; until then it answers 503 (AGT-02)."""
    endpoints = _Endpoints(thinker)

    def route(method: str, path: str, endpoint: Endpoint) -> Route:
        return Route(path, _guard(thinker, endpoint), methods=[method])

    routes = [
        route("GET", "/health", endpoints.health),
        route("POST", "/process-message", endpoints.process),
        route("POST", "/process-task", endpoints.process),
        route("GET", "/turns/{message_id}", endpoints.turn),
        route("GET", "/turns/{message_id}/events", endpoints.events),
        route("POST", "/turns/{message_id}/cancel", endpoints.cancel),
        route("POST", "/extract-facts", endpoints.extract_facts),
        route("POST", "/tidy-facts", endpoints.tidy_facts),
        route("POST", "/read-order", endpoints.read_order),
        route("POST", "/summarise", endpoints.summarise),
        route("GET", "/cost-status", endpoints.cost_status),
        route("POST", "/cost-resume", endpoints.cost_status),
        route("POST", "/clear-session", endpoints.clear_session),
    ]
    return RequireHubSecret(Starlette(routes=routes), secret)


class _Endpoints:
    def __init__(self, thinker: Thinker) -> None:
        self._thinker = thinker

    async def health(self, request: Request) -> Response:
        return JSONResponse(self._thinker.health())

    async def process(self, request: Request) -> Response:
        brief = _parse_body(TurnBrief, await read_body(request, _BODY_BYTES))
        wait = read_number(request, "wait", _MAX_WAIT_SECONDS)
        state = await self._thinker.turns.accept(brief)
        if not wait:
            return model_response(TurnAccepted(message_id=brief.message_id, state=state.state), 202)
        return model_response(await self._thinker.turns.state(brief.message_id, wait))

    async def turn(self, request: Request) -> Response:
        wait = read_number(request, "wait", _MAX_WAIT_SECONDS)
        return model_response(await self._thinker.turns.state(_message_id(request), wait))

    async def events(self, request: Request) -> Response:
        after = int(read_number(request, "after", 2**53))
        stream = await self._thinker.turns.stream(_message_id(request))
        lines = stream.lines(after, request.query_params.get("stream"))
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def cancel(self, request: Request) -> Response:
        return model_response(await self._thinker.turns.cancel(_message_id(request)))

    async def extract_facts(self, request: Request) -> Response:
        brief = _parse_body(ExtractBrief, await read_body(request, _BODY_BYTES))
        return model_response(await self._thinker.learning.extract(brief))

    async def tidy_facts(self, request: Request) -> Response:
        brief = _parse_body(TidyBrief, await read_body(request, _BODY_BYTES))
        return model_response(await self._thinker.learning.tidy(brief))

    async def read_order(self, request: Request) -> Response:
        brief = _parse_body(OrderBrief, await read_body(request, _BODY_BYTES))
        return model_response(await self._thinker.orders.read(brief))

    async def summarise(self, request: Request) -> Response:
        brief = _parse_body(SummaryBrief, await read_body(request, _BODY_BYTES))
        return model_response(await self._thinker.learning.summarise(brief))

    async def cost_status(self, request: Request) -> Response:
        return JSONResponse(await self._thinker.deps.costs.fetch_status())

    async def clear_session(self, request: Request) -> Response:
        wanted = _parse_body(ClearSession, await read_body(request, _BODY_BYTES))
        sessions = self._thinker.deps.sessions
        if wanted.removed is None:
            await sessions.clear(wanted.thread_id, by_model=wanted.by_model)
        else:
            await sessions.remove_turns(wanted.thread_id, wanted.removed)
        return JSONResponse({"cleared": wanted.thread_id})


def _guard(thinker: Thinker, endpoint: Endpoint) -> Endpoint:
    """Wrap an endpoint: set the trace, refuse while the thinker is not ready, and turn errors into responses."""

    async def handle_request(request: Request) -> Response:
        with use_trace(accept_trace(request.headers.get(TRACE_HEADER))):
            try:
                thinker.require_ready()
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
