"""OAuth at Google: where to send the person, what to make of the code they bring back, and how to give access back."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlencode

import httpx2 as httpx
from pydantic import BaseModel, SecretStr, ValidationError

from annabelle.core.errors import AnnabelleError, CallerMistake, OperatorMistake, Unavailable

MAIL_SCOPE = "https://www.googleapis.com/auth/gmail.modify"
SCOPES = {
    MAIL_SCOPE: "mail",
    "https://www.googleapis.com/auth/gmail.settings.basic": "mail filters",
    "https://www.googleapis.com/auth/calendar": "the calendar",
}
REQUEST_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class GoogleAddresses:
    """Where Google answers."""

    sign_in: str = "https://accounts.google.com/o/oauth2/v2/auth"
    token: str = "https://oauth2.googleapis.com/token"  # noqa: S105  an address
    revoke: str = "https://oauth2.googleapis.com/revoke"
    profile: str = "https://gmail.googleapis.com/gmail/v1/users/me/profile"

    @classmethod
    def at(cls, url: str) -> GoogleAddresses:
        """All of it at one other address, or at Google's own when that is empty."""
        base = url.rstrip("/")
        if not base:
            return cls()
        return cls(f"{base}/o/oauth2/v2/auth", f"{base}/token", f"{base}/revoke", f"{base}/gmail/v1/users/me/profile")


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """The application a person registered at Google for their Annabelle."""

    client_id: str
    secret: SecretStr


@dataclass(frozen=True, slots=True)
class Attempt:
    """One sign-in: only whoever began it can end it (PKCE), and only an answer with its `state` belongs to it."""

    redirect: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)

    def address(self, addresses: GoogleAddresses, client: OAuthClient) -> str:
        """The page where the person decides."""
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
            "prompt": "consent",  # without it Google gives no lasting access the second time
        }
        return f"{addresses.sign_in}?{urlencode(asked)}"


class Granted(BaseModel):
    """What Google gave."""

    access_token: SecretStr
    refresh_token: SecretStr
    scope: str = ""

    @property
    def scopes(self) -> list[str]:
        return self.scope.split()


async def exchange(addresses: GoogleAddresses, client: OAuthClient, attempt: Attempt, code: str) -> Granted:
    """The code that came back, for lasting access."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": client.client_id,
        "client_secret": client.secret.get_secret_value(),
        "redirect_uri": attempt.redirect,
        "code_verifier": attempt.verifier,
    }
    answer = await _ask("POST", addresses.token, data=form)
    if answer.is_error:
        raise _refusal(answer)
    try:
        granted = Granted.model_validate_json(answer.content)
    except ValidationError:
        # Without its cause: it would quote what Google sent.
        raise Unavailable("Google gave no lasting access.", hint="Run it again: annabelle connect google") from None
    if MAIL_SCOPE not in granted.scopes:
        raise CallerMistake(
            "Google was not allowed to open the mail.", hint="Run it again and tick every box: annabelle connect google"
        )
    return granted


async def email_of(addresses: GoogleAddresses, granted: Granted) -> str:
    """Whose account it is."""
    headers = {"Authorization": f"Bearer {granted.access_token.get_secret_value()}"}
    answer = await _ask("GET", addresses.profile, headers=headers)
    if answer.status_code == 403:
        raise OperatorMistake(
            "The Gmail API is not switched on for this client.",
            hint="Enable the Gmail API and the Calendar API of its project at console.cloud.google.com.",
        )
    try:
        if answer.is_success:
            return _Profile.model_validate_json(answer.content).emailAddress
    except ValidationError:
        pass
    raise Unavailable("Google did not say whose account it is.", hint="Try again in a minute.")


async def revoke(addresses: GoogleAddresses, token: SecretStr) -> bool:
    """Give the access back; whether Google took it. Access that had ended already is as good as withdrawn."""
    try:
        answer = await _ask("POST", addresses.revoke, data={"token": token.get_secret_value()})
    except AnnabelleError:
        return False
    return answer.is_success or _reason(answer) == "invalid_token"


class _Profile(BaseModel):
    emailAddress: str


class _Refused(BaseModel):
    error: str


async def _ask(
    method: str, url: str, *, data: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> httpx.Response:
    try:
        async with httpx.AsyncClient(timeout=REQUEST_SECONDS, trust_env=False) as http:
            return await http.request(method, url, data=data, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise Unavailable("Google can not be reached.", hint="Check the connection and try again.") from None


def _reason(answer: httpx.Response) -> str:
    try:
        return _Refused.model_validate_json(answer.content).error
    except ValidationError:
        return ""


def _refusal(answer: httpx.Response) -> AnnabelleError:
    reason = _reason(answer)
    if reason in ("invalid_client", "unauthorized_client"):
        return OperatorMistake(
            "Google does not know this client, or its secret is wrong.",
            hint="Check GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET.",
        )
    if reason in ("invalid_grant", "redirect_uri_mismatch"):
        return CallerMistake(
            "Google did not accept the sign-in.",
            hint="Run it again; the client must be of the type desktop application.",
        )
    return Unavailable(f"Google answered {answer.status_code} to the sign-in.", hint="Try again in a minute.")
