"""The thinker's HTTP side: what `core.contract` lists, and nothing else (THK-01)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from annabelle.core.contract import TRACE_HEADER, ClearSession, ExtractBrief, TidyBrief, TurnAccepted, TurnBrief
from annabelle.core.errors import AnnabelleError, InvalidArguments
from annabelle.core.trace import accept_trace, traced
from annabelle.thinker.auth import HubOnly
from annabelle.thinker.mind import Mind
from annabelle.thinker.responses import body_of, error_response, model_response, number_of

_BODY_BYTES = 20_000_000
_LONGEST_WAIT_SECONDS = 600

M = TypeVar("M", bound=BaseModel)
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(secret: str, mind: Mind) -> ASGIApp:
    """The application, ready to listen before the mind is: until then `/health` answers 503 (AGT-02)."""
    endpoints = _Endpoints(mind)
    routes = [
        Route("/health", _edge(endpoints.health), methods=["GET"]),
        Route("/process-message", _edge(endpoints.process), methods=["POST"]),
        Route("/process-task", _edge(endpoints.process), methods=["POST"]),
        Route("/turns/{message_id}", _edge(endpoints.turn), methods=["GET"]),
        Route("/turns/{message_id}/events", _edge(endpoints.events), methods=["GET"]),
        Route("/turns/{message_id}/cancel", _edge(endpoints.cancel), methods=["POST"]),
        Route("/extract-facts", _edge(endpoints.extract_facts), methods=["POST"]),
        Route("/tidy-facts", _edge(endpoints.tidy_facts), methods=["POST"]),
        Route("/cost-status", _edge(endpoints.cost_status), methods=["GET"]),
        Route("/cost-resume", _edge(endpoints.cost_status), methods=["POST"]),
        Route("/clear-session", _edge(endpoints.clear_session), methods=["POST"]),
    ]
    return HubOnly(Starlette(routes=routes), secret)


class _Endpoints:
    def __init__(self, mind: Mind) -> None:
        self._mind = mind

    async def health(self, request: Request) -> Response:
        mind = self._mind
        mind.require_ready()
        return JSONResponse(
            {
                "status": "ok",
                "agent_id": mind.profile.agent_id,
                "turns": mind.running,
                "persona": mind.persona_source,
                "thinking": mind.thinking.status(),
                "providers": [provider.to_json() for provider in mind.providers],
            }
        )

    async def process(self, request: Request) -> Response:
        self._mind.require_ready()
        brief = _parse(TurnBrief, await body_of(request, _BODY_BYTES))
        wait = number_of(request, "wait", _LONGEST_WAIT_SECONDS)
        state = await self._mind.turns.accept(brief)
        if not wait:
            return model_response(TurnAccepted(message_id=brief.message_id, state=state.state), 202)
        return model_response(await self._mind.turns.state(brief.message_id, wait))

    async def turn(self, request: Request) -> Response:
        self._mind.require_ready()
        wait = number_of(request, "wait", _LONGEST_WAIT_SECONDS)
        return model_response(await self._mind.turns.state(_message_id(request), wait))

    async def events(self, request: Request) -> Response:
        self._mind.require_ready()
        after = int(number_of(request, "after", 2**53))
        stream = await self._mind.turns.stream(_message_id(request))
        lines = stream.lines(after, request.query_params.get("stream"))
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def cancel(self, request: Request) -> Response:
        self._mind.require_ready()
        return model_response(await self._mind.turns.cancel(_message_id(request)))

    async def extract_facts(self, request: Request) -> Response:
        self._mind.require_ready()
        brief = _parse(ExtractBrief, await body_of(request, _BODY_BYTES))
        return model_response(await self._mind.learning.extract(brief))

    async def tidy_facts(self, request: Request) -> Response:
        self._mind.require_ready()
        brief = _parse(TidyBrief, await body_of(request, _BODY_BYTES))
        return model_response(await self._mind.learning.tidy(brief))

    async def cost_status(self, request: Request) -> Response:
        self._mind.require_ready()
        return JSONResponse(await self._mind.costs.standing())

    async def clear_session(self, request: Request) -> Response:
        self._mind.require_ready()
        wanted = _parse(ClearSession, await body_of(request, _BODY_BYTES))
        await self._mind.sessions.clear(wanted.thread_id)
        return JSONResponse({"cleared": wanted.thread_id})


def _edge(endpoint: Endpoint) -> Endpoint:
    """The edge of the process: a trace around every request, and every error in the one shape."""

    async def at_edge(request: Request) -> Response:
        with traced(accept_trace(request.headers.get(TRACE_HEADER))):
            try:
                return await endpoint(request)
            except AnnabelleError as error:
                return error_response(error)

    return at_edge


def _message_id(request: Request) -> str:
    return str(request.path_params["message_id"])


def _parse(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        raise InvalidArguments(f"{place}: {first['msg']}.", field=place) from error
