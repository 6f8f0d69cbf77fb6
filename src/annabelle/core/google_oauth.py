"""OAuth at Google: the sign-in URL, the local redirect server, the code exchange, and revocation."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import secrets
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic import BaseModel, SecretStr, ValidationError

from annabelle.core.connections import GoogleAccount, read_connection
from annabelle.core.errors import AnnabelleError, CallerMistake, ConfigMistake, OperatorMistake, Unavailable
from annabelle.core.home import Home
from annabelle.core.network_access import system_authorities

if TYPE_CHECKING:
    import httpx2 as httpx

MAIL_SCOPE = "https://www.googleapis.com/auth/gmail.modify"
SCOPES = {
    MAIL_SCOPE: "mail",
    "https://www.googleapis.com/auth/gmail.settings.basic": "mail filters",
    "https://www.googleapis.com/auth/calendar": "the calendar",
}
REQUEST_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class GoogleOAuthUrls:
    sign_in: str = "https://accounts.google.com/o/oauth2/v2/auth"
    token: str = "https://oauth2.googleapis.com/token"  # noqa: S105  an address
    revoke: str = "https://oauth2.googleapis.com/revoke"
    profile: str = "https://gmail.googleapis.com/gmail/v1/users/me/profile"

    @classmethod
    def from_base(cls, url: str) -> GoogleOAuthUrls:
        """All URLs under another base, or Google's own if it is empty."""
        base = url.rstrip("/")
        if not base:
            return cls()
        return cls(f"{base}/o/oauth2/v2/auth", f"{base}/token", f"{base}/revoke", f"{base}/gmail/v1/users/me/profile")


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """The application a person registered at Google for Annabelle."""

    client_id: str
    secret: SecretStr


@dataclass(frozen=True, slots=True)
class OAuthAttempt:
    """One sign-in, protected by PKCE; only a redirect with its `state` belongs to it."""

    redirect: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)

    def sign_in_url(self, addresses: GoogleOAuthUrls, client: OAuthClient) -> str:
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "client_id": client.client_id,
            "redirect_uri": self.redirect,
            "response_type": "code",
            "scope": " ".join(SCOPES),
            "state": self.state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "access_type": "offline",
            "prompt": "consent",  # without it Google gives no refresh token the second time
        }
        return f"{addresses.sign_in}?{urlencode(asked)}"


class OAuthGrant(BaseModel):
    access_token: SecretStr
    refresh_token: SecretStr
    scope: str = ""

    @property
    def scopes(self) -> list[str]:
        return self.scope.split()


async def finish_sign_in(
    addresses: GoogleOAuthUrls, client: OAuthClient, attempt: OAuthAttempt, decision: OAuthDecision
) -> GoogleAccount:
    """The account that the person allowed."""
    if decision.error or not decision.code:
        raise CallerMistake(_describe_denial(decision.error), hint="Nothing was kept. Try it again.")
    granted = await exchange(addresses, client, attempt, decision.code)
    return GoogleAccount(
        email=await fetch_email(addresses, granted),
        client_id=client.client_id,
        client_secret=client.secret,
        refresh_token=granted.refresh_token,
        scopes=granted.scopes,
    )


def _describe_denial(error: str) -> str:
    if error == "access_denied":
        return "Access was not allowed at Google."
    known = error.replace("_", "").isalpha() and len(error) <= 60
    return f"Google refused the sign-in ({error})." if known else "Google refused the sign-in."


async def exchange(addresses: GoogleOAuthUrls, client: OAuthClient, attempt: OAuthAttempt, code: str) -> OAuthGrant:
    """Exchange the code for a refresh token."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": client.client_id,
        "client_secret": client.secret.get_secret_value(),
        "redirect_uri": attempt.redirect,
        "code_verifier": attempt.verifier,
    }
    answer = await _request("POST", addresses.token, data=form)
    if answer.is_error:
        raise _to_error(answer)
    try:
        granted = OAuthGrant.model_validate_json(answer.content)
    except ValidationError:
        # The cause would quote Google's response, so drop it.
        raise Unavailable("Google gave no lasting access.", hint="Try it again.") from None
    if MAIL_SCOPE not in granted.scopes:
        raise CallerMistake("Google was not allowed to open the mail.", hint="Try it again and tick every box.")
    return granted


async def fetch_email(addresses: GoogleOAuthUrls, granted: OAuthGrant) -> str:
    headers = {"Authorization": f"Bearer {granted.access_token.get_secret_value()}"}
    answer = await _request("GET", addresses.profile, headers=headers)
    if answer.status_code == 403:
        raise OperatorMistake(
            "The Gmail API is not switched on for this client.",
            hint="Enable the Gmail API and the Calendar API of its project at console.cloud.google.com.",
        )
    try:
        if answer.is_success:
            return _GoogleProfile.model_validate_json(answer.content).emailAddress
    except ValidationError:
        pass
    raise Unavailable("Google did not say whose account it is.", hint="Try again in a minute.")


async def withdraw(home: Home, addresses: GoogleOAuthUrls) -> bool:
    """End the access of the connected account at Google, and say whether that is confirmed."""
    try:
        account = read_connection(home, "google", GoogleAccount)
    except ConfigMistake:
        return False
    return account is not None and await revoke(addresses, account.refresh_token)


async def revoke(addresses: GoogleOAuthUrls, token: SecretStr) -> bool:
    """Revoke the access; True also if it had already ended."""
    try:
        answer = await _request("POST", addresses.revoke, data={"token": token.get_secret_value()})
    except AnnabelleError:
        return False
    return answer.is_success or _refusal_reason(answer) == "invalid_token"


class _GoogleProfile(BaseModel):
    emailAddress: str


class _GoogleRefusal(BaseModel):
    error: str


async def _request(
    method: str, url: str, *, data: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> httpx.Response:
    import httpx2 as httpx  # noqa: PLC0415  a hub rarely signs in

    try:
        async with httpx.AsyncClient(verify=system_authorities(), timeout=REQUEST_SECONDS, trust_env=False) as http:
            return await http.request(method, url, data=data, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise Unavailable("Google can not be reached.", hint="Check the connection and try again.") from None


def _refusal_reason(answer: httpx.Response) -> str:
    try:
        return _GoogleRefusal.model_validate_json(answer.content).error
    except ValidationError:
        return ""


def _to_error(answer: httpx.Response) -> AnnabelleError:
    reason = _refusal_reason(answer)
    if reason in ("invalid_client", "unauthorized_client"):
        return OperatorMistake(
            "Google does not know this client, or its secret is wrong.",
            hint="Check GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET.",
        )
    if reason in ("invalid_grant", "redirect_uri_mismatch"):
        return CallerMistake(
            "Google did not accept the sign-in.",
            hint="Try it again; the client must be of the type desktop application.",
        )
    return Unavailable(f"Google answered {answer.status_code} to the sign-in.", hint="Try again in a minute.")


_READ_SECONDS = 10.0
_LINE_LIMIT = 16_384
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Annabelle</title>
<style>body{{font:18px/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1rem}}</style>
<h1>{title}</h1><p>{text}</p></html>
"""


@dataclass(frozen=True, slots=True)
class OAuthDecision:
    """The person's decision: a code, or the reason for a refusal."""

    code: str = ""
    error: str = ""


class OAuthRedirectServer:
    """Waits for the one redirect with the right state and refuses any other request."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/"
        self._expected: str | None = None
        self._decided: asyncio.Future[OAuthDecision] = asyncio.get_running_loop().create_future()

    async def wait_for_decision(self, state: str) -> OAuthDecision:
        self._expected = state
        return await asyncio.shield(self._decided)

    async def handle_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_READ_SECONDS):
                request = (await reader.readline()).decode("latin-1").split()
                while (await reader.readline()).strip():
                    pass  # the headers do not matter
                status, page, decision = self._parse_request(request)
                writer.write(_response(status, page))
                await writer.drain()
                # Only now, because the waiting task may then close this server.
                if decision is not None and not self._decided.done():
                    self._decided.set_result(decision)
        writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), _READ_SECONDS)

    def _parse_request(self, request: list[str]) -> tuple[str, str, OAuthDecision | None]:
        url = urlsplit(request[1] if len(request) == 3 else "")
        if len(request) != 3 or request[0] != "GET" or url.path != "/":
            return "404 Not Found", _page("Nothing here", "This address is for one sign-in only."), None
        sent = {name: values[0] for name, values in parse_qs(url.query).items()}
        if self._expected is None or sent.get("state") != self._expected:
            return "400 Bad Request", _page("Not this sign-in", "This answer belongs to no sign-in that waits."), None
        decision = OAuthDecision(sent.get("code", ""), sent.get("error", ""))
        if decision.code:
            return "200 OK", _page("Thank you", "You may close this page and go back to Annabelle."), decision
        return "200 OK", _page("Not connected", "Nothing was allowed. You may close this page."), decision


@asynccontextmanager
async def open_redirect_server() -> AsyncGenerator[OAuthRedirectServer]:
    """Listen on a free loopback port while the context is open."""
    listener = socket.create_server(("127.0.0.1", 0))
    redirect = OAuthRedirectServer(listener.getsockname()[1])
    async with await asyncio.start_server(redirect.handle_request, sock=listener, limit=_LINE_LIMIT):
        yield redirect


def _page(title: str, text: str) -> str:
    return _PAGE.format(title=title, text=text)


def _response(status: str, page: str) -> bytes:
    body = page.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\r\n"
    )
    return head.encode() + body
