"""Tools that tell what is new: asked of Telegram at the moment, from where the last answer ended.

Nothing has to listen in between, so what arrives while the server is down is told too.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import InvalidArguments, NotFound, TooLarge
from annabelle.servers.kit import Result, current_call, tool
from annabelle.servers.telegram.api import TelegramApi
from annabelle.servers.telegram.line import Line
from annabelle.servers.telegram.models import Chat, Message
from annabelle.servers.telegram.results import MessageEntry, entries
from annabelle.servers.telegram.subscriptions import MAX_CHATS, Listening, Subscriptions

MAX_NEW = 100
_CHATS_LOOKED_AT = 200
_NOBODY = "people"


class ChatNews(Result):
    chat_id: str
    title: str
    messages: list[MessageEntry] = Field(description="Oldest first")


class News(Result):
    chats: list[ChatNews]
    count: int
    more: bool = Field(default=False, description="There are more; ask again")

    def text(self) -> str:
        if not self.chats:
            return "Nothing new so far: ask again." if self.more else "Nothing new."
        lines = [
            line
            for chat in self.chats
            for line in (f"{chat.title} [{chat.chat_id}]:", *(m.text() for m in chat.messages))
        ]
        return "\n".join([*lines, *(["(more: ask again)"] if self.more else [])])


class Subscribed(Result):
    chat_id: str
    title: str


class SubscriptionList(Result):
    subscriptions: list[Subscribed]

    def text(self) -> str:
        listed = "\n".join(f"{one.title} [{one.chat_id}]" for one in self.subscriptions)
        return listed or "No chat is subscribed: get_new_messages tells of all private chats."


@dataclass(slots=True)
class _Gathered:
    """What was found, and how far each chat is heard with it."""

    heard: dict[int, int]
    chats: list[tuple[Chat, list[Message]]] = field(default_factory=list[tuple[Chat, list[Message]]])
    count: int = 0
    more: bool = False


class NewsTools:
    """get_new_messages and subscribe_chat."""

    def __init__(self, line: Line, subscriptions: Subscriptions) -> None:
        self._line, self._subscriptions = line, subscriptions
        self._lock = asyncio.Lock()

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def get_new_messages(
        self, peek: Annotated[bool, Field(description="Look only: the same messages are told again next time")] = False
    ) -> News:
        """Tell what others wrote since the last time this was asked, in the subscribed chats, or in all private chats
        when none is subscribed. At first it is what is unread."""
        async with self._lock, self._line.open() as api:
            listening = await self._subscriptions.read(_agent())
            gathered = await self._gather(api, listening)
            if not peek and gathered.heard != listening.heard:
                await self._subscriptions.write(_agent(), Listening(chats=listening.chats, heard=gathered.heard))
        return News(
            chats=[
                ChatNews(chat_id=str(chat.id), title=chat.title, messages=entries(found, gathered.count))
                for chat, found in gathered.chats
            ],
            count=gathered.count,
            more=gathered.more,
        )

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def subscribe_chat(
        self,
        action: Annotated[
            Literal["subscribe", "unsubscribe", "list", "clear"], Field(description="What to do; clear ends all")
        ],
        chat_id: Annotated[
            str | None, Field(min_length=1, max_length=100, description="The chat, to subscribe or unsubscribe")
        ] = None,
    ) -> SubscriptionList:
        """Choose the chats that get_new_messages tells of, and list them. A group is told of only when subscribed."""
        if action in ("subscribe", "unsubscribe") and chat_id is None:
            raise InvalidArguments(f"chat_id is missing: which chat to {action}?", field="chat_id")
        async with self._lock:
            listening = await self._subscriptions.read(_agent())
            before = listening.model_copy(deep=True)
            if action == "clear":
                listening.chats.clear()
            elif action == "subscribe" and chat_id is not None:
                await self._subscribe(listening, chat_id)
            elif action == "unsubscribe" and chat_id is not None:
                await self._unsubscribe(listening, chat_id)
            if listening != before:
                await self._subscriptions.write(_agent(), listening)
        return SubscriptionList(
            subscriptions=[Subscribed(chat_id=str(one), title=title) for one, title in listening.chats.items()]
        )

    async def _gather(self, api: TelegramApi, listening: Listening) -> _Gathered:
        gathered, me = _Gathered(dict(listening.heard)), (await api.me()).id
        for chat in await api.chats(_CHATS_LOOKED_AT):
            wanted = chat.id in listening.chats if listening.chats else chat.kind in ("private", "bot")
            heard = listening.heard.get(chat.id, chat.read_id)
            if not wanted or chat.id == me or chat.last_id <= heard:
                continue
            left = MAX_NEW - gathered.count
            if left <= 0:
                gathered.more = True
                break
            found = await api.messages_after(str(chat.id), heard, left)
            # What the account wrote itself is never news, or an agent would answer its own words for ever.
            others = [message for message in found if not message.own]
            gathered.heard[chat.id] = found[-1].id if found else chat.last_id
            gathered.more = gathered.more or len(found) == left
            if others:
                gathered.chats.append((chat, others))
                gathered.count += len(others)
        return gathered

    async def _subscribe(self, listening: Listening, chat_id: str) -> None:
        if len(listening.chats) >= MAX_CHATS:
            raise TooLarge(f"At most {MAX_CHATS} chats can be subscribed.", hint="Unsubscribe one first.")
        async with self._line.open() as api:
            chat = await api.chat(chat_id)
            newest = await api.messages(str(chat.id), 1)
        if chat.id not in listening.chats:
            listening.chats[chat.id] = chat.title
            # From now on: what is there already is no news.
            listening.heard[chat.id] = max((message.id for message in newest), default=0)

    async def _unsubscribe(self, listening: Listening, chat_id: str) -> None:
        spelled = chat_id.strip()
        known = next((one for one, title in listening.chats.items() if spelled in (str(one), title)), None)
        if known is None:
            async with self._line.open() as api:
                known = (await api.chat(chat_id)).id
        if listening.chats.pop(known, None) is None:
            raise NotFound(
                "This chat is not subscribed.", hint='subscribe_chat with action "list" shows those that are.'
            )


def _agent() -> str:
    return current_call().agent_id or _NOBODY
