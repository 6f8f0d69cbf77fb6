"""Settings of the mail and calendar server, with timeouts and certificates of mail servers."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from annabelle.core.errors import Unavailable
from annabelle.core.home import Home
from annabelle.core.network_access import describe_certificate_error, make_client_context
from annabelle.servers.kit import own_settings
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.mail_calendar.google_errors import GoogleRetry

SignedIn = Callable[[], None]


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """`seconds` limits everything up to sign-in: name resolution, greeting and login."""

    seconds: float = 25.0
    authority: str = ""

    def tls_context(self) -> ssl.SSLContext:
        return make_client_context(self.authority)

    @contextlib.asynccontextmanager
    async def sign_in_timeout(self, server: str, nothing_done: str = "") -> AsyncGenerator[SignedIn]:
        """Limit the time until the thread inside calls the yielded function. Then its own limits apply."""
        loop = asyncio.get_running_loop()
        limit: asyncio.Timeout | None = None

        def stop_the_clock() -> None:
            if limit is not None and not limit.expired():
                with contextlib.suppress(RuntimeError):  # the call is already over
                    limit.reschedule(None)

        def let_in() -> None:
            loop.call_soon_threadsafe(stop_the_clock)

        try:
            async with asyncio.timeout(self.seconds) as limit:
                yield let_in
        except TimeoutError as error:
            if limit is None or not limit.expired():
                raise
            raise self.no_answer_error(server, nothing_done) from error

    def no_answer_error(self, server: str, nothing_done: str = "") -> Unavailable:
        return Unavailable(
            f"{server} did not answer within {self.seconds:g} seconds{nothing_done}.",
            hint="Check that the server is up and that no firewall is in the way. If it is only slow: "
            "annabelle config set MAIL_TIMEOUT_SECONDS SECONDS",
        )


def password_refused() -> Unavailable:
    return Unavailable(
        "The mail server does not accept the user name or the password.", hint="Run: annabelle connect mail"
    )


def certificate_refused(server: str, error: ssl.SSLCertVerificationError) -> Unavailable:
    sentence, hint = describe_certificate_error(server, error)
    return Unavailable(sentence, hint=hint)


@dataclass(frozen=True, slots=True)
class GoogleApiUrls:
    """URLs of Google's APIs: mail, all others, and access tokens."""

    mail: str = "https://gmail.googleapis.com"
    other: str = "https://www.googleapis.com"
    token: str = "https://oauth2.googleapis.com/token"  # noqa: S105  an address, not a token

    @classmethod
    def from_base(cls, url: str) -> GoogleApiUrls:
        """All APIs at one URL, or at Google if it is empty."""
        base = url.rstrip("/")
        return cls(base, base, f"{base}/token") if base else cls()

    def url_for(self, path: str) -> str:
        return f"{self.mail if path.startswith(('/gmail/', '/upload/gmail/')) else self.other}{path}"


@dataclass(frozen=True, slots=True)
class MailCalendarConfig:
    files: FilesConfig
    google: GoogleApiUrls = GoogleApiUrls()
    google_retry: GoogleRetry = field(default_factory=GoogleRetry)
    server_access: ServerAccess = field(default_factory=ServerAccess)
    timezone: str = "UTC"
    attachment_max_bytes: int = 25_000_000

    @property
    def home(self) -> Home:
        return self.files.home

    @property
    def state(self) -> Path:
        """State between calls: cursors of new mail, and filters of IMAP mailboxes."""
        return self.home.data / "mail"

    @classmethod
    def from_environment(cls) -> MailCalendarConfig:
        settings = own_settings()
        return cls(
            files=FilesConfig.from_environment(),
            google=GoogleApiUrls.from_base(settings.google_api_url),
            server_access=ServerAccess(settings.mail_timeout_seconds, settings.mail_ca_file.strip()),
            timezone=settings.user_timezone,
            attachment_max_bytes=settings.mail_attachment_max_bytes,
        )
