"""The double's front: access, faults on demand, and the parts (mail, calendar) behind it."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLIENT_ID = "client-1"
CLIENT_SECRET = "client-secret-1"
REFRESH_TOKEN = "refresh-token-1"


class Part(Protocol):
    """What one of Google's services brings along. Its paths are the real ones, with `/gmail/v1` or `/calendar/v3`."""

    @property
    def routes(self) -> list[BaseRoute]: ...


@dataclass
class Fault:
    """Trouble for the next `times` requests whose method and path fit."""

    method: str
    path: str
    """The beginning of the path."""
    status: int = 500
    """0 breaks the connection instead of answering."""
    times: int = 1
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    done_first: bool = False
    """What was asked for happens, and only the answer is lost."""
    gate: threading.Event | None = None
    """The request is held until this is set, and then answered as usual."""
    reached: threading.Event = field(default_factory=threading.Event)
    """Set when a request ran into it."""


def problem(status: int, message: str, reason: str = "") -> JSONResponse:
    """An error as Google words it."""
    errors = [{"message": message, "reason": reason}] if reason else []
    return JSONResponse({"error": {"code": status, "message": message, "errors": errors}}, status)


class GoogleApp:
    """An ASGI application. Everything but `/token` wants access that has not ended."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self.refresh_token = REFRESH_TOKEN
        self.lasts = 3600.0
        """Seconds for which access that is given out holds."""
        self.access: dict[str, float] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        routes: list[BaseRoute] = [Route("/token", self._token, methods=["POST"])]
        for part in parts:
            routes += part.routes
        self._inner: ASGIApp = Starlette(routes=routes)

    def clear(self) -> None:
        """Nobody has access, nothing was asked, nothing fails."""
        self.refresh_token, self.lasts = REFRESH_TOKEN, 3600.0
        self.access.clear()
        self.faults.clear()
        self.requests.clear()

    def end_access(self) -> None:
        """As if the hour was over."""
        self.access.clear()

    def asked(self, method: str, path: str) -> int:
        """How many requests there were that begin so."""
        return sum(1 for one, at in self.requests if one == method and at.startswith(path))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        request = Request(scope)
        self.requests.append((request.method, request.url.path))
        fault = self._fault(request)
        if fault is not None and fault.gate is not None:
            await asyncio.to_thread(fault.gate.wait, 20)
        elif fault is not None:
            if fault.done_first:
                await self._inner(scope, receive, _nowhere)
            await _fail(fault, scope, receive, send)
            return
        if request.url.path != "/token" and not self._admitted(request):
            await problem(401, "Invalid Credentials", "authError")(scope, receive, send)
            return
        await self._inner(scope, receive, send)

    def _admitted(self, request: Request) -> bool:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return kind == "Bearer" and self.access.get(token, 0) > time.monotonic()

    def _fault(self, request: Request) -> Fault | None:
        for fault in self.faults:
            if fault.method == request.method and request.url.path.startswith(fault.path):
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                fault.reached.set()
                return fault
        return None

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        if form.get("client_secret") != CLIENT_SECRET or form.get("client_id") != CLIENT_ID:
            return JSONResponse({"error": "invalid_client"}, 401)
        if form.get("grant_type") != "refresh_token" or form.get("refresh_token") != self.refresh_token:
            return JSONResponse({"error": "invalid_grant", "error_description": "Token has been revoked."}, 400)
        token = f"access-{secrets.token_hex(8)}"
        self.access[token] = time.monotonic() + self.lasts
        return JSONResponse({"access_token": token, "expires_in": int(self.lasts), "token_type": "Bearer"})


async def _nowhere(message: Message) -> None:
    pass


async def _fail(fault: Fault, scope: Scope, receive: Receive, send: Send) -> None:
    if fault.status:
        response = problem(fault.status, "On demand.", fault.reason)
        response.headers.update(fault.headers)
        await response(scope, receive, send)
        return
    # A body that ends before it is complete is all that an application can do to break a connection.
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
    await send({"type": "http.response.body", "body": b"{"})
