"""Tools that read, send and delete messages."""

from __future__ import annotations

import hashlib
import secrets
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import AnnabelleError, InvalidArguments, NotFound
from annabelle.servers.kit import Result, current_call, tool
from annabelle.servers.telegram.api import Outgoing, TelegramApi
from annabelle.servers.telegram.arguments import MAX_MESSAGE_ID, ChatId, MessageId
from annabelle.servers.telegram.line import Line
from annabelle.servers.telegram.results import Messages, entries
from annabelle.servers.telegram.splitting import split

MAX_TEXT_CHARS = 40_000


class Sent(Result):
    chat_id: str
    message_ids: list[int] = Field(description="One for each part the text was sent in")
    parts: int

    def text(self) -> str:
        ids = ", ".join(str(one) for one in self.message_ids)
        return f"Sent as message {ids}." if ids else "It had been sent already."


class Deleted(Result):
    deleted: list[int]
    not_found: list[int] = Field(description="Ids of no message in this chat; nothing was done about them")

    def text(self) -> str:
        missing = f" Not in this chat: {', '.join(map(str, self.not_found))}." if self.not_found else ""
        return f"Deleted {len(self.deleted)} messages for everybody.{missing}"


class MarkedRead(Result):
    chat_id: str
    up_to: int | None = Field(default=None, description="The newest message marked; all of them when absent")

    def text(self) -> str:
        return "Marked as read."


class MessageTools:
    """mark_read, send_message, get_messages, search_messages and delete_messages."""

    def __init__(self, line: Line) -> None:
        self._line = line

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def mark_read(
        self,
        chat_id: ChatId,
        message_id: Annotated[
            int | None, Field(ge=1, le=MAX_MESSAGE_ID, description="Up to this message; by default all")
        ] = None,
    ) -> MarkedRead:
        """Mark the messages of a chat as read. Whoever wrote them sees it."""
        async with self._line.open() as api:
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
    ) -> Sent:
        """Send a text from the user's own account. More than 4096 characters go as several messages."""
        parts = split(message)
        if not parts:
            raise InvalidArguments("The message is empty.", field="message")
        async with self._line.open() as api:
            return await self._send(api, chat_id, parts, reply_to)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_messages(
        self,
        chat_id: ChatId,
        limit: Annotated[int, Field(ge=1, le=100, description="How many at most")] = 20,
        offset_id: Annotated[
            int | None, Field(ge=1, le=MAX_MESSAGE_ID, description="Only messages before this one")
        ] = None,
    ) -> Messages:
        """Read the newest messages of a chat, newest first."""
        async with self._line.open() as api:
            found = await api.messages(chat_id, limit, offset_id)
        oldest = found[-1].id if len(found) == limit else None
        return Messages(messages=entries(found), next_offset_id=oldest)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def search_messages(
        self,
        query: Annotated[str, Field(min_length=1, max_length=500, description="Words to look for")],
        chat_id: Annotated[
            str | None, Field(min_length=1, max_length=100, description="Only in this chat; by default in all")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=100, description="How many at most")] = 20,
    ) -> Messages:
        """Find messages by their words, in one chat or in all of them, newest first."""
        async with self._line.open() as api:
            found = await api.search(query, chat_id, limit)
        return Messages(messages=entries(found))

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_messages(
        self,
        chat_id: ChatId,
        message_ids: Annotated[
            list[MessageId], Field(min_length=1, max_length=100, description="Ids of messages in this chat")
        ],
    ) -> Deleted:
        """Delete messages of a chat, for everybody in it. They can not be brought back."""
        wanted = list(dict.fromkeys(message_ids))
        async with self._line.open() as api:
            gone = set(await api.delete(chat_id, wanted))
        if not gone:
            raise NotFound("None of these messages is in this chat.", hint="get_messages shows the ids.")
        return Deleted(
            deleted=[one for one in wanted if one in gone], not_found=[one for one in wanted if one not in gone]
        )

    async def _send(self, api: TelegramApi, chat_id: str, parts: list[str], reply_to: int | None) -> Sent:
        call_id, sent = current_call().call_id or secrets.token_hex(16), list[int]()
        for number, part in enumerate(parts):
            outgoing = Outgoing(part, _random_id(call_id, number), reply_to if number == 0 else None)
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
        return Sent(chat_id=chat_id, message_ids=sent, parts=len(parts))


def _random_id(call_id: str, number: int) -> int:
    """The same for the same part of the same call, so that Telegram takes it once, whoever repeats it."""
    digest = hashlib.sha256(f"{call_id}:{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True) or 1
