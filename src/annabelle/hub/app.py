"""The HTTP application: the resources, wrapped by the request guard."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from annabelle import __version__
from annabelle.core.contract import TOKEN_HEADER
from annabelle.core.errors import AnnabelleError
from annabelle.core.trace import current_trace
from annabelle.hub.api import (
    accounts,
    agents,
    approvals,
    audit,
    backups,
    channels,
    commands,
    costs,
    diagnosis,
    feed,
    files,
    goals,
    histories,
    logs,
    memory,
    messages,
    models,
    notes,
    openai,
    page,
    rules,
    servers,
    settings,
    skills,
    status,
    tasks,
    threads,
    tokens,
    tools,
    traces,
)
from annabelle.hub.api.endpoint import error_schemas
from annabelle.hub.context import HubContext
from annabelle.hub.security.request_guard import RequestGuard, RequestGuardConfig, error_response, validation_error

_DESCRIPTION = (
    "Annabelle's own API. Every request but /health needs the token in the file annabelle.token of the home. "
    "Errors have one shape: {error: {code, message, hint, trace_id}}."
)


class HubApi(FastAPI):
    """Documents that every path but /health needs the token. The document is built on request."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schema = super().openapi()
            schema["components"]["schemas"] |= error_schemas()
            schema["components"]["securitySchemes"] = {
                "token": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER},
                "bearer": {"type": "http", "scheme": "bearer"},
            }
            schema["security"] = [{"token": []}, {"bearer": []}]
            schema["paths"]["/health"]["get"]["security"] = []
        return super().openapi()


def make_app(hub: HubContext, mcp: ASGIApp | None = None) -> RequestGuard:
    """The application; `mcp` is what answers at /mcp."""
    app = HubApi(
        title="Annabelle",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.hub = hub
    # Routes are tried in order, so the most used come first.
    app.routes[:0] = costs.LEDGER_ROUTES
    for resource in (
        tools,
        messages,
        threads,
        histories,
        openai,
        approvals,
        agents,
        tasks,
        goals,
        feed,
        memory,
        servers,
        rules,
        skills,
        notes,
        channels,
        tokens,
        status,
        commands,
        audit,
        costs,
        traces,
        diagnosis,
        files,
        settings,
        models,
        logs,
        backups,
        accounts,
        page,
    ):
        # Not `include_router`, which would build every route again with the first request.
        app.routes.extend(resource.router.routes)
    app.routes.extend(page.PAGE_ROUTES)
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
