"""Protocols for the used part of Telethon, conversion of its objects into ours, and file transfer."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol, cast

from telethon import utils
from telethon.tl import types

from annabelle.core.errors import TooLarge
from annabelle.servers.telegram import api
from annabelle.servers.telegram.api import Download, OutgoingFile, ReportProgress


class TelethonEntity(Protocol):
    """What users, groups and channels have in common."""

    id: int


class TelethonUser(TelethonEntity, Protocol):
    first_name: str | None
    last_name: str | None
    username: str | None
    phone: str | None
    bot: bool
    contact: bool
    deleted: bool


class TelethonFile(Protocol):
    name: str | None
    mime_type: str | None
    size: int | None
    ext: str | None


class TelethonMessage(Protocol):
    id: int
    chat_id: int
    date: datetime
    message: str | None
    out: bool
    sender_id: int | None
    sender: TelethonEntity | None
    reply_to_msg_id: int | None
    media: object | None
    action: object | None
    file: TelethonFile | None


class TelethonDialogState(Protocol):
    read_inbox_max_id: int


class TelethonDialog(Protocol):
    id: int
    entity: TelethonEntity
    unread_count: int
    message: TelethonMessage | None
    dialog: TelethonDialogState


class TelethonClient(Protocol):
    """The used part of TelegramClient."""

    async def connect(self) -> None: ...
    def is_connected(self) -> bool: ...
    def disconnect(self) -> Awaitable[None]: ...
    async def get_me(self) -> TelethonUser | None: ...
    async def get_entity(self, entity: object) -> TelethonEntity: ...
    async def get_input_entity(self, peer: object) -> object: ...
    async def get_dialogs(self, limit: int | None = None) -> Sequence[TelethonDialog]: ...
    async def get_messages(self, entity: object, **options: object) -> Sequence[TelethonMessage | None]: ...
    async def delete_messages(self, entity: object, message_ids: Sequence[int], *, revoke: bool) -> object: ...
    async def send_read_acknowledge(self, entity: object, *, max_id: int | None = None) -> bool: ...
    async def send_file(self, entity: object, file: object, **options: object) -> TelethonMessage: ...
    def iter_download(self, file: object) -> AsyncIterator[bytes]: ...
    async def __call__(self, request: object) -> object: ...


_LAST_TEXT_CHARS = 200
_TELEGRAM_ITSELF = 777000
_WITHHELD = "[A message of Telegram itself, which may hold a sign-in code: read it in Telegram's own app.]"


def marked_id(entity: object) -> int:
    """An id that tells users, groups and channels apart, as other clients show it."""
    return cast("int", utils.get_peer_id(entity))  # pyright: ignore[reportUnknownMemberType]


def display_name(entity: object | None) -> str:
    return utils.get_display_name(entity) if entity is not None else ""  # pyright: ignore[reportUnknownMemberType]


def to_person(user: TelethonUser) -> api.TelegramPerson:
    return api.TelegramPerson(
        id=user.id,
        name=display_name(user) or ("Deleted account" if user.deleted else ""),
        username=user.username,
        phone=f"+{user.phone.lstrip('+')}" if user.phone else None,
        bot=bool(user.bot),
        contact=bool(user.contact),
    )


def to_people(found: Iterable[object]) -> list[api.TelegramPerson]:
    return [to_person(cast("TelethonUser", one)) for one in found if isinstance(one, types.User)]


def to_chat(entity: object, about: str = "", members: int | None = None) -> api.TelegramChat:
    return api.TelegramChat(
        id=marked_id(entity),
        title=display_name(entity),
        kind=_chat_kind(entity),
        username=cast("str | None", getattr(entity, "username", None)),
        members=members if members is not None else cast("int | None", getattr(entity, "participants_count", None)),
        about=about,
    )


def dialog_to_chat(found: TelethonDialog) -> api.TelegramChat:
    last = found.message
    return replace(
        to_chat(found.entity),
        unread=found.unread_count,
        last_id=last.id if last is not None else 0,
        read_id=found.dialog.read_inbox_max_id,
        last_at=last.date if last is not None else None,
        last_text=_message_text(last)[:_LAST_TEXT_CHARS] if last is not None else "",
    )


def to_message(found: TelethonMessage, me: int) -> api.TelegramMessage:
    return api.TelegramMessage(
        id=found.id,
        chat_id=found.chat_id,
        at=found.date,
        text=_message_text(found),
        # Messages to oneself are also own, whatever the flag says.
        own=bool(found.out) or found.sender_id == me,
        sender=display_name(found.sender),
        sender_id=found.sender_id,
        reply_to=found.reply_to_msg_id,
        media=to_media(found),
    )


def to_messages(found: Iterable[TelethonMessage | None], me: int) -> list[api.TelegramMessage]:
    return [to_message(one, me) for one in found if one is not None]


def to_media(found: TelethonMessage) -> api.TelegramMedia | None:
    if found.media is None:
        return None
    kind = _split_camel_case(type(found.media).__name__.removeprefix("MessageMedia"))
    file = found.file
    if file is None:
        return None if kind in ("empty", "web page") else api.TelegramMedia(kind)
    return api.TelegramMedia(kind, file.name, file.mime_type, file.size)


def _message_text(found: TelethonMessage) -> str:
    if _TELEGRAM_ITSELF in (found.chat_id, found.sender_id):
        return _WITHHELD  # a sign-in code gives access to the account, so no model may read it
    if found.action is not None:
        return f"[{_split_camel_case(type(found.action).__name__.removeprefix('MessageAction'))}]"
    return found.message or ""


def _split_camel_case(name: str) -> str:
    """`ChatAddUser` → "chat add user"."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name).strip()


def _chat_kind(entity: object) -> api.ChatKind:
    if isinstance(entity, types.User):
        return "bot" if entity.bot else "private"
    if isinstance(entity, types.Channel) and not entity.megagroup:
        return "channel"
    return "group"


TRANSFER_SECONDS = 280.0


async def upload_file(client: TelethonClient, peer: object, file: OutgoingFile, progress: ReportProgress) -> int:
    """Upload and send a file; returns the message id."""
    stream = io.BytesIO(file.data)
    stream.name = file.name

    async def report_step(done: int, total: int) -> None:
        await progress(done, total, f"{done} of {total} bytes sent")

    async with asyncio.timeout(TRANSFER_SECONDS):
        sent = await client.send_file(
            peer, stream, caption=file.caption, parse_mode=None, file_size=len(file.data), progress_callback=report_step
        )
    return sent.id


async def download_file(
    client: TelethonClient, message: TelethonMessage, max_bytes: int, progress: ReportProgress
) -> Download:
    """Download the file of a message; raises TooLarge as early as possible."""
    file = message.file
    assert file is not None
    if file.size is not None and file.size > max_bytes:
        raise TooLarge(f"The file has {file.size} bytes; at most {max_bytes} are fetched.")
    data = bytearray()
    async with asyncio.timeout(TRANSFER_SECONDS):
        async for chunk in client.iter_download(message):
            data += chunk
            if len(data) > max_bytes:
                raise TooLarge(f"The file has more than {max_bytes} bytes, which is the most that is fetched.")
            await progress(len(data), file.size, f"{len(data)} bytes fetched")
    name = file.name or f"{message.date:%Y-%m-%d}-{message.id}{file.ext or ''}"
    return Download(name, bytes(data))
