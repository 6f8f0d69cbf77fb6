"""The Telegram account, and the data types of its chats, people and messages."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from annabelle.core.connections import ConnectionFile, TelegramAccount
from annabelle.core.errors import AnnabelleError, Unavailable
from annabelle.core.home import Home
from annabelle.servers.kit.files.config import FilesConfig

ChatKind = Literal["private", "bot", "group", "channel"]
ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TelegramPerson:
    """A Telegram user. `phone` is known for contacts only."""

    id: int
    name: str
    username: str | None = None
    phone: str | None = None
    bot: bool = False
    contact: bool = False


@dataclass(frozen=True, slots=True)
class TelegramChat:
    """A conversation. `last_id` is its newest message, `read_id` the newest one the user has read."""

    id: int
    title: str
    kind: ChatKind
    username: str | None = None
    unread: int = 0
    members: int | None = None
    last_id: int = 0
    read_id: int = 0
    last_at: datetime | None = None
    last_text: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class TelegramMedia:
    """A message's attachment. `size` is unknown for some kinds."""

    kind: str
    name: str | None = None
    media_type: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class TelegramMessage:
    """One message. `own`: sent by this account, from any device."""

    id: int
    chat_id: int
    at: datetime
    text: str
    own: bool
    sender: str = ""
    sender_id: int | None = None
    reply_to: int | None = None
    media: TelegramMedia | None = None


@dataclass(frozen=True, slots=True)
class NewGroup:
    """A new group, and the users that could not be added."""

    chat: TelegramChat
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Download:
    """The content of a message's media, with its file name."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A text to send. Telegram accepts each `random_id` only once, so a retry is safe."""

    text: str
    random_id: int
    reply_to: int | None = None
    preview: bool = True
    """Whether Telegram may fetch a page that the text links to, to show a piece of it."""


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    name: str
    data: bytes
    caption: str = ""


CONNECT = "Run: annabelle connect telegram"


class SignedOut(Unavailable):
    """Telegram no longer knows the session: it was ended on another device, or the account is gone."""

    def __init__(self) -> None:
        super().__init__("Telegram has ended this session.", hint=CONNECT)


class AccountFile:
    def __init__(self, home: Home) -> None:
        self._file = ConnectionFile(home, "telegram", TelegramAccount)

    def read(self) -> TelegramAccount:
        """The account; raises Unavailable if there is none or Telethon is not installed."""
        account = self._file.load()
        if account is None:
            raise Unavailable("Telegram is not connected.", hint=CONNECT)
        if importlib.util.find_spec("telethon") is None:
            raise Unavailable(
                "Telegram needs a library that is not installed.", hint="Run: pip install 'annabelle[telegram]'"
            )
        return account

    async def describe_missing(self) -> str | None:
        """Why the account cannot be used, as one sentence, or None."""
        try:
            self.read()
        except AnnabelleError as error:
            return f"{error.message} {error.hint}" if error.hint else error.message
        return None


@dataclass(frozen=True, slots=True)
class TelegramConfig:
    """The home, the workspace, and how long an unused connection stays open."""

    home: Home
    files: FilesConfig
    idle_seconds: float = 600

    @classmethod
    def from_environment(cls) -> TelegramConfig:
        return cls(Home.from_environment(), FilesConfig.from_environment())

    @property
    def subscriptions_file(self) -> Path:
        return self.home.data / "telegram" / "subscriptions.json"
