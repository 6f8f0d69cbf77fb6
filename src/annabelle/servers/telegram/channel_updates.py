"""The account as a channel, for the hub alone: what others wrote since a cursor, and replies that arrive once.

Nothing is kept here. The hub gives the cursor of what it has stored, so what it has not stored is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.servers.kit import Result, tool
from annabelle.servers.telegram.api import OutgoingMessage, TelegramMedia, TelegramMessage
from annabelle.servers.telegram.connection import TelegramConnection
from annabelle.servers.telegram.messages import MAX_TEXT_CHARS, make_random_id, split_message
from annabelle.servers.telegram.results import ChatId

if TYPE_CHECKING:
    from annabelle.servers.telegram.mtproto.client import TelethonApi

_MOST: Final = 100
_CHATS: Final = 200


class FeedCursor(BaseModel):
    """Up to `floor` everything was read, in all chats; in some of them more.

    Telegram numbers the messages of an account's private chats together.
    """

    floor: int
    heard: dict[int, int] = Field(default_factory=dict[int, int])

    def last_read(self, chat_id: int) -> int:
        return max(self.floor, self.heard.get(chat_id, 0))


class FeedMessage(Result):
    chat_id: str
    message_id: int
    at: datetime
    sender: str
    content: str
    bot: bool = Field(description="Written by a bot")
    media: TelegramMedia | None = None


class FeedPage(Result):
    messages: list[FeedMessage] = Field(description="Oldest first in each chat")
    cursor: str = Field(description="To be given next time, once these are stored")
    more: bool = Field(default=False, description="There are more; ask again")


class FeedReplySent(Result):
    message_ids: list[int] = Field(description="Empty if it had been sent already")


class ChannelFeedTools:
    def __init__(self, connection: TelegramConnection) -> None:
        self._connection = connection

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True, audience="hub")
    async def read_updates(
        self,
        cursor: Annotated[str | None, Field(description="Of the last page; without it, begin now")] = None,
        chat_ids: Annotated[
            list[ChatId] | None, Field(max_length=_CHATS, description="Only these chats; by default all private ones")
        ] = None,
    ) -> FeedPage:
        """Read what others wrote in private chats. The account's own messages and Saved Messages are left out."""
        known = _parse_cursor(cursor)
        async with self._connection.open() as api:
            if known is None:
                newest = max((chat.last_id for chat in await api.chats(_CHATS)), default=0)
                return FeedPage(messages=[], cursor=FeedCursor(floor=newest).model_dump_json())
            if chat_ids is None:
                return await _read_every_chat(api, known)
            return await _read_chats(api, known, chat_ids)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True, audience="hub")
    async def send_reply(
        self,
        chat_id: ChatId,
        message: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS, description="The text")],
        key: Annotated[str, Field(min_length=1, max_length=200, description="The same again sends nothing")],
    ) -> FeedReplySent:
        """Send what Annabelle says. Telegram fetches no page that it links to."""
        sent: list[int] = []
        async with self._connection.open() as api:
            for number, part in enumerate(split_message(message)):
                outgoing = OutgoingMessage(part, make_random_id(key, number), preview=False)
                message_id = await api.send(chat_id, outgoing)
                sent += [] if message_id is None else [message_id]
        return FeedReplySent(message_ids=sent)


async def _read_every_chat(api: TelethonApi, known: FeedCursor) -> FeedPage:
    chats, me = await api.chats(_CHATS), (await api.me()).id
    found: list[FeedMessage] = []
    heard = dict(known.heard)
    for chat in chats:
        if chat.kind not in ("private", "bot") or chat.id == me or chat.last_id <= known.last_read(chat.id):
            continue
        left = _MOST - len(found)
        if left <= 0:
            return _make_page(found, FeedCursor(floor=known.floor, heard=heard), more=True)
        new = await api.messages_after(str(chat.id), known.last_read(chat.id), left)
        found += _describe(new, bot=chat.kind == "bot")
        if new:
            heard[chat.id] = new[-1].id
        if len(new) == left:
            return _make_page(found, FeedCursor(floor=known.floor, heard=heard), more=True)
    # Not above what the list of chats showed: a chat that was written in since then has not been read.
    floor = max((chat.last_id for chat in chats if chat.kind != "channel"), default=known.floor)
    floor = max(floor, known.floor)
    return _make_page(found, FeedCursor(floor=floor, heard={one: last for one, last in heard.items() if last > floor}))


async def _read_chats(api: TelethonApi, known: FeedCursor, chat_ids: Sequence[str]) -> FeedPage:
    me = (await api.me()).id
    found: list[FeedMessage] = []
    heard = dict(known.heard)
    for chat_id in chat_ids:
        if not chat_id.isdecimal() or int(chat_id) == me:
            continue
        try:
            new = await api.messages_after(chat_id, known.last_read(int(chat_id)), _MOST)
        except NotFound:
            continue  # this person has never written
        found += _describe(new, bot=False)
        if new:
            heard[int(chat_id)] = new[-1].id
    return _make_page(found, FeedCursor(floor=known.floor, heard=heard))


def _describe(messages: Sequence[TelegramMessage], *, bot: bool) -> list[FeedMessage]:
    return [
        FeedMessage(
            chat_id=str(one.chat_id),
            message_id=one.id,
            at=one.at,
            sender=one.sender,
            content=one.text,
            bot=bot,
            media=one.media,
        )
        for one in messages
        if not one.own
    ]


def _make_page(messages: list[FeedMessage], cursor: FeedCursor, *, more: bool = False) -> FeedPage:
    return FeedPage(messages=messages, cursor=cursor.model_dump_json(), more=more)


def _parse_cursor(cursor: str | None) -> FeedCursor | None:
    try:
        return None if cursor is None else FeedCursor.model_validate_json(cursor)
    except ValidationError as error:
        raise InvalidArguments("This is no cursor of ours.", field="cursor") from error
