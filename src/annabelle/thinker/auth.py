"""Lets only the hub in: every request carries this process's own secret and is addressed to loopback (THK-05)."""

from __future__ import annotations

import secrets

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from annabelle.core.contract import TOKEN_HEADER
from annabelle.core.errors import AnnabelleError, NotAllowed, Unauthorized
from annabelle.thinker.responses import error_response

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


class HubOnly:
    """Wraps the whole application, so that no endpoint can be forgotten."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self._app, self._secret = app, secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            problem = self._problem(Headers(scope=scope))
            if problem is not None:
                await error_response(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _problem(self, headers: Headers) -> AnnabelleError | None:
        host = headers.get("host", "")
        if host.rpartition(":")[0] not in _LOOPBACK and host not in _LOOPBACK:
            return NotAllowed("This address is not served here.")
        offered = headers.get(TOKEN_HEADER, "").encode()
        if not self._secret or not secrets.compare_digest(offered, self._secret):
            return Unauthorized("Only the hub that started this thinker may call it.")
        return None
