"""What is used of Telethon, as types: the library itself has none that a checker could hold us to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

Step = Callable[[int, int], Awaitable[None]]


class Entity(Protocol):
    """A user, a group or a channel. Only what all of them have."""

    id: int


class User(Entity, Protocol):
    first_name: str | None
    last_name: str | None
    username: str | None
    phone: str | None
    bot: bool
    contact: bool
    deleted: bool


class File(Protocol):
    name: str | None
    mime_type: str | None
    size: int | None
    ext: str | None


class Message(Protocol):
    id: int
    chat_id: int
    date: datetime
    message: str | None
    out: bool
    sender_id: int | None
    sender: Entity | None
    reply_to_msg_id: int | None
    media: object | None
    action: object | None
    file: File | None


class DialogState(Protocol):
    read_inbox_max_id: int


class Dialog(Protocol):
    id: int
    entity: Entity
    unread_count: int
    message: Message | None
    dialog: DialogState


class Client(Protocol):
    """The part of TelegramClient that is called."""

    async def connect(self) -> None: ...
    def is_connected(self) -> bool: ...
    def disconnect(self) -> Awaitable[None]: ...
    async def get_me(self) -> User | None: ...
    async def get_entity(self, entity: object) -> Entity: ...
    async def get_input_entity(self, peer: object) -> object: ...
    async def get_dialogs(self, limit: int | None = None) -> Sequence[Dialog]: ...
    async def get_messages(self, entity: object, **options: object) -> Sequence[Message | None]: ...
    async def delete_messages(self, entity: object, message_ids: Sequence[int], *, revoke: bool) -> object: ...
    async def send_read_acknowledge(self, entity: object, *, max_id: int | None = None) -> bool: ...
    async def send_file(self, entity: object, file: object, **options: object) -> Message: ...
    def iter_download(self, file: object) -> AsyncIterator[bytes]: ...
    async def __call__(self, request: object) -> object: ...
