"""Tools about chats, groups and people."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.core.result_text import for_model
from annabelle.servers.kit import Result, tool
from annabelle.servers.telegram.connection import TelegramConnection
from annabelle.servers.telegram.results import ChatEntry, ChatId, ChatList, PeopleResult, PersonEntry


class GroupCreated(Result):
    chat: ChatEntry
    left_out: list[str] = Field(description="People who do not let themselves be added; send them a link instead")

    def to_text(self) -> str:
        missing = f" Could not be added: {', '.join(self.left_out)}." if self.left_out else ""
        return f"Made the group {self.chat.title}{for_model(f' [{self.chat.chat_id}]')}.{missing}"


class ChatTools:
    def __init__(self, connection: TelegramConnection) -> None:
        self._connection = connection

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_chats(
        self, limit: Annotated[int, Field(ge=1, le=200, description="How many at most")] = 50
    ) -> ChatList:
        """List the chats, the one with the newest message first, with their ids and how much is unread."""
        async with self._connection.open() as api:
            return ChatList(chats=[ChatEntry.model_validate(chat) for chat in await api.chats(limit)])

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_chat(self, chat_id: ChatId) -> ChatEntry:
        """Tell about one chat: its title, kind, members and description."""
        async with self._connection.open() as api:
            return ChatEntry.model_validate(await api.chat(chat_id))

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def create_group(
        self,
        title: Annotated[str, Field(min_length=1, max_length=128, description="What the group is called")],
        user_ids: Annotated[
            list[ChatId], Field(min_length=1, max_length=50, description="Who is in it: ids, @usernames or +phones")
        ],
    ) -> GroupCreated:
        """Make a group and put people into it. They are told by Telegram."""
        async with self._connection.open() as api:
            made = await api.create_group(title, list(dict.fromkeys(user_ids)))
        return GroupCreated(chat=ChatEntry.model_validate(made.chat), left_out=[str(one) for one in made.left_out])


MAX_SHOWN = 500
_PHONE = re.compile(r"\+?[0-9]{5,15}")


class PeopleTools:
    def __init__(self, connection: TelegramConnection) -> None:
        self._connection = connection

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_contacts(self) -> PeopleResult:
        """List the contacts of the account by name; at most 500 are shown."""
        async with self._connection.open() as api:
            found = sorted(await api.contacts(), key=lambda person: person.name.casefold())
        return PeopleResult(people=[PersonEntry.model_validate(one) for one in found[:MAX_SHOWN]], total=len(found))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def add_contact(
        self,
        phone: Annotated[
            str, Field(min_length=5, max_length=40, description="Number with its country code: +49 151 …")
        ],
        first_name: Annotated[str, Field(min_length=1, max_length=64, description="First name to keep them under")],
        last_name: Annotated[str | None, Field(max_length=64, description="Last name")] = None,
    ) -> PersonEntry:
        """Add somebody to the contacts by their phone number."""
        number = re.sub(r"[\s().-]", "", phone)
        if not _PHONE.fullmatch(number):
            raise InvalidArguments("This is not a phone number.", hint="Write it as +491511234567.", field="phone")
        async with self._connection.open() as api:
            added = await api.add_contact(f"+{number.lstrip('+')}", first_name, last_name or "")
        return PersonEntry.model_validate(added)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def search_users(
        self,
        query: Annotated[str, Field(min_length=1, max_length=100, description="A name, or a part of a username")],
        limit: Annotated[int, Field(ge=1, le=50, description="How many at most")] = 10,
    ) -> PeopleResult:
        """Find people at Telegram by name or username, contacts first."""
        async with self._connection.open() as api:
            found = await api.search_people(query, limit)
        return PeopleResult(people=[PersonEntry.model_validate(one) for one in found], total=len(found))

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_me(self) -> PersonEntry:
        """Tell which account this is."""
        async with self._connection.open() as api:
            return PersonEntry.model_validate(await api.me())
