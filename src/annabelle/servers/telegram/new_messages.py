"""Tools that return messages since the last call, and subscriptions to chats. Nothing listens in between."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import InvalidArguments, NotFound, StorageTrouble, TooLarge
from annabelle.core.home import write_atomically
from annabelle.core.result_text import for_model
from annabelle.servers.kit import Result, StopSign, current_call, in_thread, tool
from annabelle.servers.telegram.api import TelegramChat, TelegramMessage
from annabelle.servers.telegram.connection import TelegramConnection
from annabelle.servers.telegram.results import MessageEntry, message_entries

if TYPE_CHECKING:
    from annabelle.servers.telegram.mtproto.client import TelethonApi

_log = logging.getLogger(__name__)

MAX_CHATS = 200


class AgentSubscriptions(BaseModel):
    """One agent's state. `chats` are its subscriptions; `heard` is the last message it was given, by chat."""

    chats: dict[int, str] = Field(default_factory=dict[int, str])
    heard: dict[int, int] = Field(default_factory=dict[int, int])


class _SubscriptionFile(BaseModel):
    agents: dict[str, AgentSubscriptions] = Field(default_factory=dict[str, AgentSubscriptions])


class SubscriptionStore:
    """Stores subscriptions in a file. Callers that change something must hold the tools' lock."""

    def __init__(self, file: Path) -> None:
        self._file = file

    async def read(self, agent: str) -> AgentSubscriptions:
        return (await in_thread(self._read)).agents.get(agent) or AgentSubscriptions()

    async def write(self, agent: str, state: AgentSubscriptions) -> None:
        def write_file(stop: StopSign) -> None:
            kept = self._read(stop)
            stop.check()
            kept.agents[agent] = state
            try:
                write_atomically(self._file, kept.model_dump_json(indent=2))
            except OSError as error:
                raise StorageTrouble(
                    f"The subscriptions could not be written: {error.strerror}.", hint="Free space on the disk."
                ) from error

        await in_thread(write_file)

    def _read(self, _stop: StopSign) -> _SubscriptionFile:
        try:
            return _SubscriptionFile.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return _SubscriptionFile()
        except OSError as error:  # the file may be intact; treating it as empty would overwrite it
            raise StorageTrouble(
                f"The subscriptions could not be read: {error.strerror}.", hint=f"Look at {self._file.name}."
            ) from error
        except ValidationError:
            _log.warning("%s can not be read; it is taken as empty and written anew.", self._file.name)
            return _SubscriptionFile()


MAX_NEW = 100
_CHATS_LOOKED_AT = 200
_NO_AGENT = "people"


class ChatNewMessages(Result):
    chat_id: str
    title: str
    messages: list[MessageEntry] = Field(description="Oldest first")


class NewMessages(Result):
    chats: list[ChatNewMessages]
    count: int
    more: bool = Field(default=False, description="There are more; ask again")

    def to_text(self) -> str:
        if not self.chats:
            return "Nothing new so far: ask again." if self.more else "Nothing new."
        lines = [
            line
            for chat in self.chats
            for line in (f"{chat.title}{for_model(f' [{chat.chat_id}]')}:", *(m.to_text() for m in chat.messages))
        ]
        return "\n".join([*lines, *(["(more: ask again)"] if self.more else [])])


class SubscribedChat(Result):
    chat_id: str
    title: str


class SubscriptionList(Result):
    subscriptions: list[SubscribedChat]

    def to_text(self) -> str:
        listed = "\n".join(f"{one.title}{for_model(f' [{one.chat_id}]')}" for one in self.subscriptions)
        return listed or "No chat is subscribed: get_new_messages tells of all private chats."


@dataclass(slots=True)
class _GatheredMessages:
    """New messages, and the last message given for each chat."""

    heard: dict[int, int]
    chats: list[tuple[TelegramChat, list[TelegramMessage]]] = field(
        default_factory=list[tuple[TelegramChat, list[TelegramMessage]]]
    )
    count: int = 0
    more: bool = False


class NewMessageTools:
    def __init__(self, connection: TelegramConnection, subscriptions: SubscriptionStore) -> None:
        self._connection, self._subscriptions = connection, subscriptions
        self._lock = asyncio.Lock()

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def get_new_messages(
        self, peek: Annotated[bool, Field(description="Look only: the same messages are told again next time")] = False
    ) -> NewMessages:
        """Tell what others wrote since the last time this was asked, in the subscribed chats, or in all private chats
        when none is subscribed. At first it is what is unread."""
        async with self._lock, self._connection.open() as api:
            state = await self._subscriptions.read(_calling_agent())
            gathered = await self._gather(api, state)
            if not peek and gathered.heard != state.heard:
                await self._subscriptions.write(
                    _calling_agent(), AgentSubscriptions(chats=state.chats, heard=gathered.heard)
                )
        return NewMessages(
            chats=[
                ChatNewMessages(chat_id=str(chat.id), title=chat.title, messages=message_entries(found, gathered.count))
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
            state = await self._subscriptions.read(_calling_agent())
            before = state.model_copy(deep=True)
            if action == "clear":
                state.chats.clear()
            elif action == "subscribe" and chat_id is not None:
                await self._subscribe(state, chat_id)
            elif action == "unsubscribe" and chat_id is not None:
                await self._unsubscribe(state, chat_id)
            if state != before:
                await self._subscriptions.write(_calling_agent(), state)
        return SubscriptionList(
            subscriptions=[SubscribedChat(chat_id=str(one), title=title) for one, title in state.chats.items()]
        )

    async def _gather(self, api: TelethonApi, state: AgentSubscriptions) -> _GatheredMessages:
        gathered, me = _GatheredMessages(dict(state.heard)), (await api.me()).id
        for chat in await api.chats(_CHATS_LOOKED_AT):
            wanted = chat.id in state.chats if state.chats else chat.kind in ("private", "bot")
            heard = state.heard.get(chat.id, chat.read_id)
            if not wanted or chat.id == me or chat.last_id <= heard:
                continue
            left = MAX_NEW - gathered.count
            if left <= 0:
                gathered.more = True
                break
            found = await api.messages_after(str(chat.id), heard, left)
            # The account's own messages are not news, or an agent would answer itself forever.
            others = [message for message in found if not message.own]
            gathered.heard[chat.id] = found[-1].id if found else chat.last_id
            gathered.more = gathered.more or len(found) == left
            if others:
                gathered.chats.append((chat, others))
                gathered.count += len(others)
        return gathered

    async def _subscribe(self, state: AgentSubscriptions, chat_id: str) -> None:
        if len(state.chats) >= MAX_CHATS:
            raise TooLarge(f"At most {MAX_CHATS} chats can be subscribed.", hint="Unsubscribe one first.")
        async with self._connection.open() as api:
            chat = await api.chat(chat_id)
            newest = await api.messages(str(chat.id), 1)
        if chat.id not in state.chats:
            state.chats[chat.id] = chat.title
            # Existing messages are not news.
            state.heard[chat.id] = max((message.id for message in newest), default=0)

    async def _unsubscribe(self, state: AgentSubscriptions, chat_id: str) -> None:
        spelled = chat_id.strip()
        known = next((one for one, title in state.chats.items() if spelled in (str(one), title)), None)
        if known is None:
            async with self._connection.open() as api:
                known = (await api.chat(chat_id)).id
        if state.chats.pop(known, None) is None:
            raise NotFound(
                "This chat is not subscribed.", hint='subscribe_chat with action "list" shows those that are.'
            )


def _calling_agent() -> str:
    return current_call().agent_id or _NO_AGENT
