"""The HTTP application: resources inside, one door around them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from annabelle import __version__
from annabelle.core.contract import TOKEN_HEADER
from annabelle.core.errors import AnnabelleError
from annabelle.core.trace import current_trace
from annabelle.hub.api import (
    agents,
    approvals,
    audit,
    costs,
    forget,
    health,
    ledger,
    memory,
    messages,
    rules,
    servers,
    status,
    stop,
    tasks,
    threads,
    tools,
)
from annabelle.hub.api.documented import shapes_of_failures
from annabelle.hub.errors import answer, invalid
from annabelle.hub.security.door import Door, DoorRules
from annabelle.hub.services import Hub

_DESCRIPTION = (
    "Annabelle's own API. Every request but /health needs the token in the file annabelle.token of the home. "
    "Errors have one shape: {error: {code, message, hint, trace_id}}."
)


class Api(FastAPI):
    """Says in its document that every address but /health wants the token. The document is made when asked for."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schema = super().openapi()
            schema["components"]["schemas"] |= shapes_of_failures()
            schema["components"]["securitySchemes"] = {
                "token": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER},
                "bearer": {"type": "http", "scheme": "bearer"},
            }
            schema["security"] = [{"token": []}, {"bearer": []}]
            schema["paths"]["/health"]["get"]["security"] = []
        return super().openapi()


def make_app(hub: Hub) -> Door:
    """The application for one hub, ready to be served."""
    app = Api(
        title="Annabelle",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.hub = hub
    # Routes are tried in order, so what a turn uses most comes first.
    app.routes[:0] = ledger.ROUTES
    for resource in (
        tools,
        messages,
        threads,
        approvals,
        agents,
        tasks,
        memory,
        forget,
        servers,
        rules,
        status,
        stop,
        audit,
        costs,
        health,
    ):
        # As they are: the framework's way to include them builds every one again with the first request.
        app.routes.extend(resource.router.routes)
    app.add_exception_handler(AnnabelleError, _failed)
    app.add_exception_handler(HTTPException, _failed)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(Exception, _failed)
    return Door(app, DoorRules.from_settings(hub.settings, hub.identities, hub.logins))


async def _failed(request: Request, error: Exception) -> Response:
    failed = answer(error, current_trace())
    if failed.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # The framework names the methods of the first route at an address, which may have several.
        here = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
        failed.headers["Allow"] = ", ".join(sorted({method for route in here for method in route.methods or ()}))
    return failed


async def _malformed(_request: Request, error: Exception) -> Response:
    return answer(invalid(cast("RequestValidationError", error).errors()), current_trace())
