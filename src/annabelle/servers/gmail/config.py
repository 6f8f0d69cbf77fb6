"""What mail and calendar are told by their environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from annabelle.core.home import Home
from annabelle.servers.gmail.google_trouble import Patience
from annabelle.servers.gmail.reach import Reach
from annabelle.servers.kit import own_settings
from annabelle.servers.kit.files.config import FilesConfig

MAIL_BASE = "https://gmail.googleapis.com"
API_BASE = "https://www.googleapis.com"
TOKEN_ADDRESS = "https://oauth2.googleapis.com/token"  # noqa: S105  an address, not a token


@dataclass(frozen=True, slots=True)
class GoogleAddresses:
    """Where Google answers: mail at one host, everything else at another, access at a third."""

    mail: str = MAIL_BASE
    other: str = API_BASE
    token: str = TOKEN_ADDRESS

    @classmethod
    def at(cls, url: str) -> GoogleAddresses:
        """All of it at one other address, or at Google's own when that is empty."""
        base = url.rstrip("/")
        return cls(base, base, f"{base}/token") if base else cls()

    def of(self, path: str) -> str:
        return f"{self.mail if path.startswith(('/gmail/', '/upload/gmail/')) else self.other}{path}"


@dataclass(frozen=True, slots=True)
class GmailConfig:
    """Where accounts and files are, and how much of a mail is taken in."""

    files: FilesConfig
    google: GoogleAddresses = GoogleAddresses()
    patience: Patience = field(default_factory=Patience)
    reach: Reach = field(default_factory=Reach)
    timezone: str = "UTC"
    attachment_max_bytes: int = 25_000_000

    @property
    def home(self) -> Home:
        return self.files.home

    @property
    def state(self) -> Path:
        """What is remembered between calls: how far new mail was looked at, and the filters of a plain mailbox."""
        return self.home.data / "mail"

    @classmethod
    def from_environment(cls) -> GmailConfig:
        settings = own_settings()
        return cls(
            files=FilesConfig.from_environment(),
            google=GoogleAddresses.at(settings.google_api_url),
            reach=Reach(settings.mail_timeout_seconds, settings.mail_ca_file.strip()),
            timezone=settings.user_timezone,
            attachment_max_bytes=settings.mail_attachment_max_bytes,
        )
