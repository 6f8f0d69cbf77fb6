"""Tools that read, send and delete messages, and send and download their files."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from annabelle.core.errors import AnnabelleError, InvalidArguments, NotFound
from annabelle.core.result_text import for_model
from annabelle.servers.kit import Result, current_call, tool
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.telegram.api import OutgoingFile, OutgoingMessage
from annabelle.servers.telegram.connection import TelegramConnection
from annabelle.servers.telegram.results import MAX_MESSAGE_ID, ChatId, MessageId, TelegramMessageList, message_entries

if TYPE_CHECKING:
    from annabelle.servers.telegram.mtproto.client import TelethonApi

MAX_MESSAGE_UNITS = 4096
"""Telegram's limit for one message, in UTF-16 units."""

_PAUSES = ("\n\n", "\n", ". ", " ")


def split_message(text: str, most: int = MAX_MESSAGE_UNITS) -> list[str]:
    """Split a text into messages. Only whitespace at the cuts is lost."""
    parts: list[str] = []
    rest = text.strip()
    while rest:
        fits = _count_fitting(rest, most)
        if fits == len(rest):
            parts.append(rest)
            break
        end = _find_cut(rest, fits)
        parts.append(rest[:end].rstrip())
        rest = rest[end:].lstrip("\n ")
    return parts


def _count_fitting(text: str, most: int) -> int:
    """How many characters fit into `most` UTF-16 units."""
    units = 0
    for position, char in enumerate(text):
        units += 2 if ord(char) > 0xFFFF else 1
        if units > most:
            return position
    return len(text)


def _find_cut(text: str, fits: int) -> int:
    """Cut after the last pause in the second half of what fits, or where it is full."""
    for pause in _PAUSES:
        found = text.rfind(pause, fits // 2, fits)
        if found > 0:
            return found + len(pause)
    return fits


MAX_TEXT_CHARS = 40_000


class TelegramSent(Result):
    chat_id: str
    message_ids: list[int] = Field(description="One for each part the text was sent in")
    parts: int

    def to_text(self) -> str:
        ids = ", ".join(str(one) for one in self.message_ids)
        return f"Sent{for_model(f' as message {ids}')}." if ids else "It had been sent already."


class MessagesDeleted(Result):
    deleted: list[int]
    not_found: list[int] = Field(description="Ids of no message in this chat; nothing was done about them")

    def to_text(self) -> str:
        missing = f" Not in this chat: {', '.join(map(str, self.not_found))}." if self.not_found else ""
        return f"Deleted {len(self.deleted)} messages for everybody.{missing}"


class MarkedRead(Result):
    chat_id: str
    up_to: int | None = Field(default=None, description="The newest message marked; all of them when absent")

    def to_text(self) -> str:
        return "Marked as read."


class MessageTools:
    def __init__(self, connection: TelegramConnection) -> None:
        self._connection = connection

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def mark_read(
        self,
        chat_id: ChatId,
        message_id: Annotated[
            int | None, Field(ge=1, le=MAX_MESSAGE_ID, description="Up to this message; by default all")
        ] = None,
    ) -> MarkedRead:
        """Mark the messages of a chat as read. Whoever wrote them sees it."""
        async with self._connection.open() as api:
            await api.mark_read(chat_id, message_id)
        return MarkedRead(chat_id=chat_id, up_to=message_id)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def send_message(
        self,
        chat_id: ChatId,
        message: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS, description="The text, sent as it is")],
        reply_to: Annotated[
            int | None, Field(ge=1, le=MAX_MESSAGE_ID, description="Id of the message this answers")
        ] = None,
    ) -> TelegramSent:
        """Send a text from the user's own account. More than 4096 characters go as several messages."""
        parts = split_message(message)
        if not parts:
            raise InvalidArguments("The message is empty.", field="message")
        async with self._connection.open() as api:
            return await self._send_parts(api, chat_id, parts, reply_to)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_messages(
        self,
        chat_id: ChatId,
        limit: Annotated[int, Field(ge=1, le=100, description="How many at most")] = 20,
        offset_id: Annotated[
            int | None, Field(ge=1, le=MAX_MESSAGE_ID, description="Only messages before this one")
        ] = None,
    ) -> TelegramMessageList:
        """Read the newest messages of a chat, newest first."""
        async with self._connection.open() as api:
            found = await api.messages(chat_id, limit, offset_id)
        oldest = found[-1].id if len(found) == limit else None
        return TelegramMessageList(messages=message_entries(found), next_offset_id=oldest)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def search_messages(
        self,
        query: Annotated[str, Field(min_length=1, max_length=500, description="Words to look for")],
        chat_id: Annotated[
            str | None, Field(min_length=1, max_length=100, description="Only in this chat; by default in all")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=100, description="How many at most")] = 20,
    ) -> TelegramMessageList:
        """Find messages by their words, in one chat or in all of them, newest first."""
        async with self._connection.open() as api:
            found = await api.search(query, chat_id, limit)
        return TelegramMessageList(messages=message_entries(found))

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_messages(
        self,
        chat_id: ChatId,
        message_ids: Annotated[
            list[MessageId], Field(min_length=1, max_length=100, description="Ids of messages in this chat")
        ],
    ) -> MessagesDeleted:
        """Delete messages of a chat, for everybody in it. They can not be brought back."""
        wanted = list(dict.fromkeys(message_ids))
        async with self._connection.open() as api:
            gone = set(await api.delete(chat_id, wanted))
        if not gone:
            raise NotFound("None of these messages is in this chat.", hint="get_messages shows the ids.")
        return MessagesDeleted(
            deleted=[one for one in wanted if one in gone], not_found=[one for one in wanted if one not in gone]
        )

    async def _send_parts(self, api: TelethonApi, chat_id: str, parts: list[str], reply_to: int | None) -> TelegramSent:
        call_id, sent = current_call().call_id or secrets.token_hex(16), list[int]()
        for number, part in enumerate(parts):
            outgoing = OutgoingMessage(part, make_random_id(call_id, number), reply_to if number == 0 else None)
            try:
                message_id = await api.send(chat_id, outgoing)
            except AnnabelleError as error:
                if number:
                    ids = ", ".join(map(str, sent))
                    error.message = f"Only {number} of {len(parts)} parts were sent (messages {ids}). {error.message}"
                raise
            if message_id is not None:
                sent.append(message_id)
            if len(parts) > 1:
                await current_call().progress(number + 1, len(parts), f"{number + 1} of {len(parts)} parts sent")
        return TelegramSent(chat_id=chat_id, message_ids=sent, parts=len(parts))


def make_random_id(key: str, number: int) -> int:
    """A stable id for each part of what has this key, so that Telegram accepts a repeated send only once."""
    digest = hashlib.sha256(f"{key}:{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True) or 1


MAX_BYTES = 50_000_000
MAX_CAPTION_CHARS = 1024


class MediaSent(Result):
    chat_id: str
    message_id: int
    path: str
    size: int

    def to_text(self) -> str:
        return f"Sent {self.path} ({self.size} bytes){for_model(f' as message {self.message_id}')}."


class MediaSaved(Result):
    path: str
    size: int

    def to_text(self) -> str:
        return f"Saved as {self.path} ({self.size} bytes)."


class MediaTools:
    def __init__(self, connection: TelegramConnection, workspace: Workspace) -> None:
        self._connection, self._workspace = connection, workspace

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def send_media(
        self,
        chat_id: ChatId,
        file_path: Annotated[
            str, Field(min_length=1, max_length=4096, description="File in the workspace or in a granted folder")
        ],
        caption: Annotated[str | None, Field(max_length=MAX_CAPTION_CHARS, description="Text under the file")] = None,
    ) -> MediaSent:
        """Send a file: a picture, a video, a document. At most 50 MB."""
        content = await self._workspace.read(file_path, MAX_BYTES, field="file_path")
        file = OutgoingFile(content.path.rsplit("/", 1)[-1], content.data, caption or "")
        async with self._connection.open() as api:
            message_id = await api.send_file(chat_id, file, current_call().progress)
        return MediaSent(chat_id=chat_id, message_id=message_id, path=content.path, size=len(content.data))

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def download_media(
        self,
        chat_id: ChatId,
        message_id: MessageId,
        output_path: Annotated[
            str,
            Field(
                min_length=1,
                max_length=4096,
                description="Where in the workspace to save it; a folder, written with / at its end, keeps its name",
            ),
        ],
    ) -> MediaSaved:
        """Save the file of a message in the workspace. A file that is there is never replaced. At most 50 MB."""
        async with self._connection.open() as api:
            found = await api.download(chat_id, message_id, MAX_BYTES, current_call().progress)
        if output_path.endswith("/"):
            kept = await self._workspace.keep(output_path.rstrip("/") or "/", found.name, found.data)
        else:
            kept = await self._workspace.write(output_path, found.data, field="output_path")
        return MediaSaved(path=kept.path, size=kept.size)
