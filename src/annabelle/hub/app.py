"""The HTTP application: the resources, wrapped by the request guard.

A resource is imported with the first request for it. All of them would be a fifth of what the hub imports.
"""

from __future__ import annotations

import asyncio
import importlib
from http import HTTPStatus
from typing import Any, Final, cast

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from annabelle import __version__
from annabelle.core.contract import TOKEN_HEADER
from annabelle.core.errors import AnnabelleError
from annabelle.core.trace import current_trace
from annabelle.hub.api.endpoint import error_schemas
from annabelle.hub.context import HubContext
from annabelle.hub.security.request_guard import RequestGuard, RequestGuardConfig, error_response, validation_error

_DESCRIPTION = (
    "Annabelle's own API. Every request but /health needs the token in the file annabelle.token of the home. "
    "Errors have one shape: {error: {code, message, hint, trace_id}}."
)


RESOURCES: Final = {
    "accounts": ("accounts",),
    "agents": ("agents", "kill", "resume", "stop"),
    "approvals": ("approvals",),
    "audit": ("audit",),
    "backups": ("backups",),
    "channels": ("channels",),
    "commands": ("commands",),
    "costs": ("costs", "internal"),
    "diagnosis": ("diagnosis", "health"),
    "feed": ("feed", "user-agent"),
    "files": ("files",),
    "goals": ("goals",),
    "histories": ("threads",),
    "logs": ("logs",),
    "memory": ("memory",),
    "messages": ("message", "messages"),
    "models": ("models",),
    "notes": ("links", "notes"),
    "openai": ("v1",),
    "page": ("", "page", "sessions"),
    "rules": ("rules",),
    "servers": ("servers",),
    "settings": ("settings",),
    "skills": ("fires", "hooks", "skill-files", "skills"),
    "status": ("health", "restart", "status"),
    "tasks": ("tasks",),
    "threads": ("events", "threads"),
    "tokens": ("sessions", "tokens"),
    "tools": ("tools",),
    "traces": ("traces",),
}
"""The modules of `hub.api`, each with the first segments of its paths."""


class HubApi(FastAPI):
    """Documents that every path but /health needs the token. The document is built on request."""

    def __init__(self, hub: HubContext) -> None:
        super().__init__(
            title="Annabelle",
            version=__version__,
            description=_DESCRIPTION,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        self.state.hub = hub
        self._awaited = {
            segment: [name for name, segments in RESOURCES.items() if segment in segments]
            for segment in sorted({segment for segments in RESOURCES.values() for segment in segments})
        }
        self._added = set[str]()
        self._adding = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        segment: list[str] = scope["path"].split("/", 2)[1:2] if scope["type"] == "http" else []
        if segment and segment[0] in self._awaited:
            async with self._adding:
                for name in self._awaited.get(segment[0], ()):
                    await asyncio.to_thread(_import_resource, name)
                self._add_resources(segment[0])
        await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            for segment in [*self._awaited]:
                self._add_resources(segment)
            schema = super().openapi()
            schema["components"]["schemas"] |= error_schemas()
            schema["components"]["securitySchemes"] = {
                "token": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER},
                "bearer": {"type": "http", "scheme": "bearer"},
            }
            schema["security"] = [{"token": []}, {"bearer": []}]
            schema["paths"]["/health"]["get"]["security"] = []
        return super().openapi()

    def _add_resources(self, segment: str) -> None:
        for name in self._awaited.pop(segment, ()):
            if name not in self._added:
                self._added.add(name)
                # Not `include_router`, which would build every route again with the first request.
                self.routes.extend(_import_resource(name).routes)


def _import_resource(name: str) -> APIRouter:
    return cast("APIRouter", importlib.import_module(f"annabelle.hub.api.{name}").router)


def make_app(hub: HubContext, mcp: ASGIApp | None = None) -> RequestGuard:
    """The application; `mcp` is what answers at /mcp."""
    app = HubApi(hub)
    if mcp is not None:
        app.routes.append(Route("/mcp", endpoint=mcp))
    app.add_exception_handler(AnnabelleError, _on_error)
    app.add_exception_handler(HTTPException, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(Exception, _on_error)
    return RequestGuard(
        app, RequestGuardConfig.from_settings(hub.base.settings, hub.security.identities, hub.security.logins)
    )


async def _on_error(request: Request, error: Exception) -> Response:
    failed = error_response(error, current_trace(), request.url.path)
    if failed.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # Starlette lists only the methods of the first matching route.
        here = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
        here = [route for route in here if route.path == request.url.path] or here  # /goals/reorder is no goal
        failed.headers["Allow"] = ", ".join(sorted({method for route in here for method in route.methods or ()}))
    return failed


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    invalid = validation_error(cast("RequestValidationError", error).errors())
    return error_response(invalid, current_trace(), request.url.path)
