"""What the tools need of Telegram, and nothing more. `mtproto` keeps this promise with Telethon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from annabelle.core.connections import TelegramAccount
from annabelle.servers.telegram.models import Chat, Download, Message, NewGroup, Person, Progress


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A text on its way. Telegram takes the same `random_id` once only, however often it is sent."""

    text: str
    random_id: int
    reply_to: int | None = None


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file on its way."""

    name: str
    data: bytes
    caption: str = ""


class TelegramApi(Protocol):
    """One signed-in account. Chats are named as the model names them: an id, @username, +phone or "me".

    Raises NotFound, NotAllowed, InvalidArguments, TooManyRequests, Unavailable or OutcomeUnknown and nothing else.
    """

    @property
    def connected(self) -> bool: ...

    async def connect(self) -> None:
        """Open the connection; SignedOut when Telegram no longer knows the session."""
        ...

    async def close(self) -> None: ...

    async def me(self) -> Person: ...

    async def chats(self, limit: int) -> list[Chat]: ...

    async def chat(self, chat: str) -> Chat: ...

    async def create_group(self, title: str, people: Sequence[str]) -> NewGroup: ...

    async def contacts(self) -> list[Person]: ...

    async def add_contact(self, phone: str, first_name: str, last_name: str) -> Person: ...

    async def search_people(self, query: str, limit: int) -> list[Person]: ...

    async def messages(self, chat: str, limit: int, before: int | None = None) -> list[Message]:
        """Newest first."""
        ...

    async def messages_after(self, chat: str, after: int, limit: int) -> list[Message]:
        """Oldest first."""
        ...

    async def search(self, query: str, chat: str | None, limit: int) -> list[Message]: ...

    async def send(self, chat: str, outgoing: Outgoing) -> int | None:
        """The id of the message; None when it had been sent before."""
        ...

    async def delete(self, chat: str, ids: Sequence[int]) -> list[int]:
        """Those that were in this chat and are gone now."""
        ...

    async def mark_read(self, chat: str, up_to: int | None) -> None: ...

    async def send_file(self, chat: str, file: OutgoingFile, progress: Progress) -> int: ...

    async def download(self, chat: str, message_id: int, max_bytes: int, progress: Progress) -> Download: ...


MakeApi = Callable[[TelegramAccount], TelegramApi]
