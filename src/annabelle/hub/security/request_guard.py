"""Checks every HTTP request before a resource sees it, and turns every error into one response shape (API-04)."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, cast

from pydantic import BaseModel, ValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annabelle.core.contract import CLIENT_HEADER, TOKEN_HEADER, TRACE_HEADER
from annabelle.core.errors import (
    AnnabelleError,
    CallerMistake,
    ErrorBody,
    InvalidArguments,
    NotAllowed,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    explain_shortage,
)
from annabelle.core.settings import Settings
from annabelle.core.trace import accept_trace, use_trace
from annabelle.hub.security.audit import LoginAudit
from annabelle.hub.security.identities import CallerIdentity, Identities, authorize_path
from annabelle.hub.security.page_links import KEY_HEADER, join_secret
from annabelle.hub.security.users_file import token_revoked


def _split_names(text: str) -> frozenset[str]:
    return frozenset(name.strip().lower().rstrip("/") for name in text.split(",") if name.strip())


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


@dataclass(frozen=True, slots=True)
class AllowedAddresses:
    """The host names a request may be addressed to, and the origins a browser page may call from."""

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def from_settings(cls, settings: Settings) -> AllowedAddresses:
        return cls(_split_names(settings.annabelle_allowed_hosts), _split_names(settings.annabelle_cors_origins))

    def check_host(self, host: bytes | None) -> None:
        if host is None or _without_port(host.decode("latin-1").lower()) not in self.hosts:
            raise NotAllowed(
                "This host name is not served here.",
                hint="Address the hub as 127.0.0.1 or localhost, or add the name to ANNABELLE_ALLOWED_HOSTS.",
            )

    def check_origin(self, origin: bytes, host: bytes | None) -> bool:
        """Refuses a foreign origin. Returns True if the origin is foreign and allowed by a setting (CORS)."""
        name = origin.decode("latin-1").lower().rstrip("/")
        if name in self.origins:
            return True
        # The hub's own pages, also behind a proxy with TLS. The host was checked before.
        scheme, _, place = name.partition("://")
        if host is not None and scheme in ("http", "https") and place == host.decode("latin-1").lower():
            return False
        raise NotAllowed(
            "Pages of this origin may not call Annabelle.", hint="Add the origin to ANNABELLE_CORS_ORIGINS to allow it."
        )


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The request body is larger than {limit} bytes.", hint="Send less, or raise ANNABELLE_MAX_BODY_BYTES."
    )


def check_content_length(length: bytes | None, limit: int) -> None:
    if length is not None and length.isdigit() and int(length) > limit:
        raise _too_large(limit)


def limit_body(receive: Receive, limit: int, is_revoked: Callable[[], bool]) -> Receive:
    """Wraps `receive` to raise an error when the body exceeds the limit, or comes after its token was revoked."""
    seen = 0

    async def receive_counted() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            if is_revoked():
                raise token_revoked()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise _too_large(limit)
        return message

    return receive_counted


@dataclass(slots=True)
class _RateBucket:
    tokens: float
    filled_at: float


class RateLimit:
    """Counts requests by caller, with the monotonic clock."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity, self._per_second = float(per_minute), per_minute / 60
        self._clock = clock
        self._buckets: dict[Hashable, _RateBucket] = {}

    def check(self, caller: Hashable) -> None:
        now = self._clock()
        bucket = self._buckets.setdefault(caller, _RateBucket(self._capacity, now))
        bucket.tokens = min(self._capacity, bucket.tokens + (now - bucket.filled_at) * self._per_second)
        bucket.filled_at = now
        if bucket.tokens < 1:
            raise TooManyRequests(
                "Too many requests in a short time.",
                hint="Wait as long as Retry-After says, or raise ANNABELLE_RATE_LIMIT_PER_MINUTE.",
                retry_after=(1 - bucket.tokens) / self._per_second,
            )
        bucket.tokens -= 1


_CODES = {404: "not_found", 405: "method_not_allowed", 400: "bad_request"}
_SENTENCES = {
    404: "There is nothing at this address.",
    405: "This address does not answer that method.",
    400: "The request could not be read.",
}


class ErrorAnswer(BaseModel):
    """What every failed request answers."""

    error: ErrorBody


def error_response(error: Exception, trace_id: str | None, path: str = "") -> Response:
    """Response for an error at a path. An unknown error reveals only its trace id."""
    headers: dict[str, str] = {}
    if not isinstance(error, (AnnabelleError, HTTPException)):
        error = explain_shortage(error) or error
    if isinstance(error, AnnabelleError):
        status, body = error.http_status, error.body(trace_id)
        if isinstance(error, TooManyRequests):
            headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    elif isinstance(error, HTTPException):
        status = error.status_code
        code = _CODES.get(status, HTTPStatus(status).name.lower())
        body = ErrorBody(code=code, message=_SENTENCES.get(status, f"{error.detail}."), trace_id=trace_id)
        headers.update(error.headers or {})
    else:
        status = 500
        body = ErrorBody(
            code="internal_error",
            message="Something went wrong inside Annabelle.",
            hint="Look for the trace id in the logs: annabelle trace shows what happened.",
            trace_id=trace_id,
        )
    if path.startswith(OPENAI_PATHS):
        return _openai_error_response(status, body, headers)
    return Response(ErrorAnswer(error=body).model_dump_json(), status, headers, media_type="application/json")


OPENAI_PATHS: Final = "/v1/"
_OPENAI_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def openai_error(status: int, body: ErrorBody) -> dict[str, object]:
    """Our error with the fields that clients of OpenAI's API look for. They show the message alone."""
    kind = _OPENAI_TYPES.get(status, "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "")
    hint = "" if body.hint is None or body.hint in body.message else f" {body.hint}"
    said = {"message": body.message + hint, "param": body.field}
    return {**body.model_dump(), **said, "type": kind or "invalid_request_error"}


def _openai_error_response(status: int, body: ErrorBody, headers: dict[str, str]) -> Response:
    # OpenAI answers 400 where we say 422.
    status = HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNPROCESSABLE_ENTITY else status
    text = json.dumps({"error": openai_error(status, body)})
    return Response(text, status, headers, media_type="application/json")


def validation_error(error: ValidationError | Sequence[object]) -> InvalidArguments:
    """The first error of an invalid request, with the field's name and never its value."""
    faults = error.errors(include_url=False, include_input=False) if isinstance(error, ValidationError) else error
    first = cast("dict[str, object]", faults[0])
    place = [str(part) for part in cast("Sequence[object]", first["loc"]) if part not in ("body", "query", "path")]
    field = ".".join(place) or None
    reason = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "json_invalid":
        return InvalidArguments(f"The body is not valid JSON: {reason}.")
    return InvalidArguments(f"{field or 'The body'} is not valid: {reason}.", field=field)


_log = logging.getLogger(__name__)
UPLOAD_BYTES: Final = 20 * 1024 * 1024
"""The largest file that comes with a message."""
_OPEN_PATHS = frozenset({"/health"})
_PAGE: Final = re.compile(r"/(page(/.*)?)?$")
"""Files of the page: they are the same for everybody."""
_WEBHOOKS: Final = re.compile(r"/hooks/|/channels/[a-z]+/webhook$")
"""They bring a secret of their own."""
_TOKEN, _TRACE, _CLIENT = (name.lower().encode() for name in (TOKEN_HEADER, TRACE_HEADER, CLIENT_HEADER))
_WANTED = frozenset(
    {b"host", b"origin", b"content-length", b"authorization", b"cookie", KEY_HEADER, _TOKEN, _TRACE, _CLIENT}
)
_CORS = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": f"Authorization, Content-Type, Last-Event-ID, {TOKEN_HEADER}, {TRACE_HEADER}",
    "Access-Control-Max-Age": "600",
}


@dataclass(frozen=True, slots=True)
class RequestGuardConfig:
    identities: Identities
    addresses: AllowedAddresses
    rate: RateLimit
    max_body_bytes: int
    logins: LoginAudit | None = None

    @classmethod
    def from_settings(
        cls, settings: Settings, identities: Identities, logins: LoginAudit | None = None
    ) -> RequestGuardConfig:
        return cls(
            identities,
            AllowedAddresses.from_settings(settings),
            RateLimit(settings.annabelle_rate_limit_per_minute),
            settings.annabelle_max_body_bytes,
            logins,
        )

    def body_limit(self, path: str) -> int:
        return max(self.max_body_bytes, UPLOAD_BYTES) if path == "/files" else self.max_body_bytes


_POLICY_VIOLATION: Final = 1008


class RequestGuard:
    """Wraps the application. Refused requests never reach it."""

    def __init__(self, app: ASGIApp, rules: RequestGuardConfig) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            # No resource uses websockets, and the checks below are for HTTP.
            await send(
                {"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": "There are no websockets here."}
            )
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = {name: value for name, value in scope["headers"] if name in _WANTED}
        offered = headers.get(_TRACE)
        with use_trace(accept_trace(offered.decode("latin-1") if offered is not None else None)) as trace_id:
            exchange = _Exchange(send, trace_id, scope["path"])
            try:
                reply = self._admit(scope, headers, exchange)
                if reply is not None:
                    await reply(scope, receive, exchange.send)
                else:
                    body = limit_body(receive, self._rules.body_limit(scope["path"]), exchange.is_revoked)
                    await self._app(scope, body, exchange.send)
            except AnnabelleError as error:
                await exchange.fail(error, scope, receive)
            except Exception as error:  # noqa: BLE001  the edge of the process: log it and answer
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
        check_content_length(headers.get(b"content-length"), rules.body_limit(scope["path"]))
        reads = scope["method"] in ("GET", "HEAD")
        if scope["path"] in _OPEN_PATHS or (reads and _PAGE.match(scope["path"]) is not None):
            return None
        signs_in = scope["path"] == "/sessions" and scope["method"] == "POST"
        if signs_in or _WEBHOOKS.match(scope["path"]) is not None:
            # Guessing the secret is slowed down.
            client = scope.get("client")
            rules.rate.check(("secrets", client[0] if client else ""))
            return None
        identity = self._identify(scope, headers)
        authorize_path(identity, scope["path"])
        if identity.kind not in ("agent", "server"):
            rules.rate.check(identity)
            # Who revokes their own token or signs out gets the answer; there, the token is checked with the change.
            if not scope["path"].startswith(("/tokens", "/sessions/")):
                exchange.is_revoked = lambda: rules.identities.is_revoked(identity)
        scope.setdefault("state", {})["identity"] = identity
        return None

    def _identify(self, scope: Scope, headers: dict[bytes, bytes]) -> CallerIdentity:
        logins = self._rules.logins
        try:
            identity = self._rules.identities.identify(_token_from_headers(headers))
        except Unauthorized:
            if logins is not None:
                client = scope.get("client")
                logins.refused(str(client[0]) if client else "unknown", scope["path"])
            raise
        if logins is not None:
            logins.accepted(identity, headers.get(_CLIENT, b"other").decode("latin-1"))
        return identity


def _token_from_headers(headers: dict[bytes, bytes]) -> bytes:
    token = headers.get(_TOKEN)
    if token is not None:
        return token
    scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    return join_secret(headers.get(b"cookie", b""), headers.get(KEY_HEADER, b""))


class _Exchange:
    """One response. Adds the trace id, and sends an error only if nothing was sent yet.

    When the caller's token is revoked meanwhile, its body is not read and the response ends.
    """

    def __init__(self, send: Send, trace_id: str, path: str) -> None:
        self._send, self._trace_id, self._path = send, trace_id, path
        self._started = self._cut = False
        self.allow_origin: str | None = None
        self.is_revoked: Callable[[], bool] = lambda: False

    async def send(self, message: Message) -> None:
        if self.is_revoked() and not self._cut:
            self._cut = True
            refusal = error_response(token_revoked(), self._trace_id, self._path)
            start = {"type": "http.response.start", "status": refusal.status_code, "headers": refusal.raw_headers}
            end: Message = {"type": "http.response.body", "body": b"" if self._started else refusal.body}
            for part in (end,) if self._started else (start, end):
                await self._forward(part)
        elif not self._cut:
            await self._forward(message)

    async def _forward(self, message: Message) -> None:
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
        # A client that disconnected needs no answer.
        with contextlib.suppress(OSError):
            await error_response(error, self._trace_id, self._path)(scope, receive, self.send)
