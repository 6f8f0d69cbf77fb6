"""The one door of the HTTP API: every request is traced, checked and bounded here before a resource sees it.

A plain ASGI wrapper, because it stands in the path of every tool call.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annabelle.core.contract import CLIENT_HEADER, TOKEN_HEADER, TRACE_HEADER
from annabelle.core.errors import AnnabelleError, CallerMistake, Unauthorized
from annabelle.core.settings import Settings
from annabelle.core.trace import accept_trace, traced
from annabelle.hub.audit.logins import Logins
from annabelle.hub.errors import answer
from annabelle.hub.security.addresses import Addresses
from annabelle.hub.security.body import bounded, check_announced
from annabelle.hub.security.identities import Identities, Identity, authorise
from annabelle.hub.security.rate import RateLimit

_log = logging.getLogger(__name__)
_OPEN_PATHS = frozenset({"/health"})
_WANTED = frozenset(
    {
        b"host",
        b"origin",
        b"content-length",
        b"authorization",
        TOKEN_HEADER.lower().encode(),
        CLIENT_HEADER.lower().encode(),
        TRACE_HEADER.lower().encode(),
    }
)
_TOKEN, _TRACE = TOKEN_HEADER.lower().encode(), TRACE_HEADER.lower().encode()
_CLIENT = CLIENT_HEADER.lower().encode()
_CORS = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": f"Authorization, Content-Type, Last-Event-ID, {TOKEN_HEADER}, {TRACE_HEADER}",
    "Access-Control-Max-Age": "600",
}


@dataclass(frozen=True, slots=True)
class DoorRules:
    """What the door enforces."""

    identities: Identities
    addresses: Addresses
    rate: RateLimit
    max_body_bytes: int
    logins: Logins | None = None

    @classmethod
    def from_settings(cls, settings: Settings, identities: Identities, logins: Logins | None = None) -> DoorRules:
        return cls(
            identities,
            Addresses.from_settings(settings),
            RateLimit(settings.annabelle_rate_limit_per_minute),
            settings.annabelle_max_body_bytes,
            logins,
        )


class Door:
    """Wraps the application; nothing inside it runs for a request that is not allowed in."""

    def __init__(self, app: ASGIApp, rules: DoorRules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = {name: value for name, value in scope["headers"] if name in _WANTED}
        offered = headers.get(_TRACE)
        with traced(accept_trace(offered.decode("latin-1") if offered is not None else None)) as trace_id:
            exchange = _Exchange(send, trace_id)
            try:
                reply = self._admit(scope, headers, exchange)
                if reply is not None:
                    await reply(scope, receive, exchange.send)
                else:
                    await self._app(scope, bounded(receive, self._rules.max_body_bytes), exchange.send)
            except AnnabelleError as error:
                await exchange.fail(error, scope, receive)
            except Exception as error:  # noqa: BLE001  the edge of the process: logged, and answered in the one shape
                _log.exception("A request failed: %s %s", scope["method"], scope["path"])
                await exchange.fail(error, scope, receive)

    def _admit(self, scope: Scope, headers: dict[bytes, bytes], exchange: _Exchange) -> Response | None:
        rules, host = self._rules, headers.get(b"host")
        rules.addresses.check_host(host)
        origin = headers.get(b"origin")
        if origin is not None and rules.addresses.check_origin(origin, host):
            exchange.allow_origin = origin.decode("latin-1")
            if scope["method"] == "OPTIONS":
                return Response(status_code=204, headers=_CORS)
        check_announced(headers.get(b"content-length"), rules.max_body_bytes)
        if scope["path"] in _OPEN_PATHS:
            return None
        identity = self._recognise(scope, headers)
        authorise(identity, scope["path"])
        if identity.kind not in ("agent", "server"):
            rules.rate.take(identity)
        scope.setdefault("state", {})["identity"] = identity
        return None

    def _recognise(self, scope: Scope, headers: dict[bytes, bytes]) -> Identity:
        logins = self._rules.logins
        try:
            identity = self._rules.identities.recognise(_token(headers))
        except Unauthorized:
            if logins is not None:
                client = scope.get("client")
                logins.refused(str(client[0]) if client else "unknown", scope["path"])
            raise
        if logins is not None:
            logins.accepted(identity, headers.get(_CLIENT, b"other").decode("latin-1"))
        return identity


def _token(headers: dict[bytes, bytes]) -> bytes:
    token = headers.get(_TOKEN)
    if token is not None:
        return token
    scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
    return value.strip() if scheme.lower() == b"bearer" else b""


class _Exchange:
    """One answer on its way out: it gets the trace id, and an error only while nothing was sent yet."""

    def __init__(self, send: Send, trace_id: str) -> None:
        self._send, self._trace_id = send, trace_id
        self._started = False
        self.allow_origin: str | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            headers = MutableHeaders(scope=message)
            headers[TRACE_HEADER] = self._trace_id
            if self.allow_origin is not None:
                headers["Access-Control-Allow-Origin"] = self.allow_origin
                headers["Access-Control-Expose-Headers"] = f"{TRACE_HEADER}, Retry-After"
                headers.add_vary_header("Origin")
        await self._send(message)

    async def fail(self, error: Exception, scope: Scope, receive: Receive) -> None:
        if self._started:
            return
        known = error if isinstance(error, AnnabelleError) else None
        if known is not None and not isinstance(known, CallerMistake):
            _log.warning("%s %s: %s", scope["method"], scope["path"], known.message)
        # A client that has gone away needs no answer.
        with contextlib.suppress(OSError):
            await answer(error, self._trace_id)(scope, receive, self.send)
