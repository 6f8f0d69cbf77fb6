"""Authenticated requests to Google in the user's name."""

from __future__ import annotations

import asyncio
import json as jsonlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from annabelle.core.connections import GoogleAccount
from annabelle.core.errors import OutcomeUnknown, TooLarge, Unavailable
from annabelle.core.network_access import system_authorities
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import deferred_module
from annabelle.servers.mail_calendar.config import GoogleApiUrls
from annabelle.servers.mail_calendar.google_errors import GoogleRetry, is_retryable, quote_message, to_error

if TYPE_CHECKING:
    import httpx2
else:
    httpx2 = deferred_module("httpx2")


SIGN_IN_GONE = "Google no longer accepts the sign-in."
SIGN_IN_AGAIN = "Run: annabelle connect google"
SECONDS = 30.0
_EARLY = 60.0
"""Access is renewed this many seconds early, so that it does not expire during a request."""
_MAX_ANSWER_BYTES = 64_000_000
_Answer = tuple[int, Mapping[str, str], JsonObject]
"""Status, headers and content."""
_REPEATABLE = ("GET", "HEAD", "PUT", "DELETE")


@dataclass(frozen=True, slots=True, repr=False)
class _AccessToken:
    token: str
    ends: float

    @property
    def header(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


class GoogleSession:
    def __init__(self, account: GoogleAccount, addresses: GoogleApiUrls, retry: GoogleRetry | None = None) -> None:
        self.email = account.email
        self.rejected = False
        """Whether Google has refused the sign-in. Shown by readiness."""
        self.account, self._addresses = account, addresses
        self._retry = retry or GoogleRetry()
        self._client: httpx2.AsyncClient | None = None
        self._access: _AccessToken | None = None
        self._renewing = asyncio.Lock()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, object] | None = None,
        json: object | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
    ) -> JsonObject:
        """Return the response's JSON or {}. `repeatable` marks a POST or PATCH as safe to send again."""
        again = method in _REPEATABLE if repeatable is None else repeatable
        for _ in range(2):
            access = await self._get_access()
            request = self._http().build_request(
                method,
                self._addresses.url_for(path),
                params=_encode_params(params),
                json=json,
                content=content,
                headers={**(headers or {}), **access.header},
            )
            status, told, body = await self._exchange(request, repeatable=again)
            if status < 300:
                return body
            if status != 401:
                raise to_error(status, body, told.get("retry-after"))
            self._forget(access)
        raise self._sign_in_gone()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _exchange(self, request: httpx2.Request, *, repeatable: bool) -> _Answer:
        """Send a request, again after a failure that may pass. Returns the last answer, whatever it says."""
        attempt = 0
        while True:
            attempt += 1
            last = attempt >= self._retry.tries
            try:
                status, headers, body = await self._answer(request)
            except (httpx2.HTTPError, TimeoutError) as error:
                if not repeatable and not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
                    raise _unknown_outcome(request.method) from error
                if last:
                    raise Unavailable("Google can not be reached.", hint="Try again in a moment.") from error
                await self._retry.wait(attempt, None)
                continue
            if not is_retryable(status, body):
                return status, headers, body
            if not repeatable and status not in (403, 429):
                raise _unknown_outcome(request.method)
            if last or not await self._retry.wait(attempt, headers.get("retry-after")):
                return status, headers, body

    async def _answer(self, request: httpx2.Request) -> _Answer:
        async with asyncio.timeout(SECONDS * 4):
            response = await self._http().send(request, stream=True)
            try:
                data = bytearray()
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > _MAX_ANSWER_BYTES:
                        raise TooLarge("Google's answer is too large to be read.", hint="Ask for less.")
            finally:
                await response.aclose()
        return response.status_code, response.headers, _parse_object(bytes(data))

    async def _get_access(self) -> _AccessToken:
        """Unexpired access. Concurrent calls share one renewal."""
        held = self._access
        if held is not None and held.ends > time.monotonic() + _EARLY:
            return held
        async with self._renewing:
            held = self._access
            if held is None or held.ends <= time.monotonic() + _EARLY:
                held = self._access = await self._renew()
            return held

    def _forget(self, access: _AccessToken) -> None:
        """Drop refused access, unless another call has renewed it."""
        if self._access is access:
            self._access = None

    async def _renew(self) -> _AccessToken:
        form = {
            "grant_type": "refresh_token",
            "client_id": self.account.client_id,
            "client_secret": self.account.client_secret.get_secret_value(),
            "refresh_token": self.account.refresh_token.get_secret_value(),
        }
        asked = time.monotonic()
        request = self._http().build_request("POST", self._addresses.token, data=form)
        status, _, body = await self._exchange(request, repeatable=True)
        token, lasts = body.get("access_token"), body.get("expires_in")
        if status == 200 and isinstance(token, str):
            self.rejected = False
            return _AccessToken(token, asked + (float(lasts) if isinstance(lasts, int | float) else 3600.0))
        if body.get("error") in ("invalid_grant", "invalid_client", "unauthorized_client") or status in (400, 401):
            raise self._sign_in_gone()
        raise Unavailable(
            f"Google does not give access at the moment{quote_message(body)}.", hint="Try again in a moment."
        )

    def _sign_in_gone(self) -> Unavailable:
        self.rejected = True
        self._access = None
        return Unavailable(SIGN_IN_GONE, hint=SIGN_IN_AGAIN)

    def _http(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = httpx2.AsyncClient(
                verify=system_authorities(), timeout=SECONDS, follow_redirects=False, trust_env=False
            )
        return self._client


def _unknown_outcome(method: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"The connection to Google broke during a {method}; it may or may not have been done.",
        hint="Look before you try again.",
    )


def _encode_params(params: Mapping[str, object] | None) -> list[tuple[str, str | int | float | None]]:
    """Encode like Google: booleans in lower case, lists as repeated names."""
    pairs: list[tuple[str, str | int | float | None]] = []
    for name, value in (params or {}).items():
        values = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
        pairs += [(name, str(one).lower() if isinstance(one, bool) else str(one)) for one in values if one is not None]
    return pairs


def _parse_object(data: bytes) -> JsonObject:
    try:
        parsed: object = jsonlib.loads(data) if data else {}
    except ValueError:
        return {}
    return cast("JsonObject", parsed) if isinstance(parsed, dict) else {}
