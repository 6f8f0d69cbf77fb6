"""Tools about chats: which there are, one of them, a new group."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.servers.kit import Result, tool
from annabelle.servers.telegram.arguments import ChatId
from annabelle.servers.telegram.line import Line
from annabelle.servers.telegram.results import ChatEntry, Chats


class GroupMade(Result):
    chat: ChatEntry
    left_out: list[str] = Field(description="People who do not let themselves be added; send them a link instead")

    def text(self) -> str:
        missing = f" Could not be added: {', '.join(self.left_out)}." if self.left_out else ""
        return f"Made the group {self.chat.title} [{self.chat.chat_id}].{missing}"


class ChatTools:
    """list_chats, get_chat and create_group."""

    def __init__(self, line: Line) -> None:
        self._line = line

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_chats(
        self, limit: Annotated[int, Field(ge=1, le=200, description="How many at most")] = 50
    ) -> Chats:
        """List the chats, the one with the newest message first, with their ids and how much is unread."""
        async with self._line.open() as api:
            return Chats(chats=[ChatEntry.of(chat) for chat in await api.chats(limit)])

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_chat(self, chat_id: ChatId) -> ChatEntry:
        """Tell about one chat: its title, kind, members and description."""
        async with self._line.open() as api:
            return ChatEntry.of(await api.chat(chat_id))

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def create_group(
        self,
        title: Annotated[str, Field(min_length=1, max_length=128, description="What the group is called")],
        user_ids: Annotated[
            list[ChatId], Field(min_length=1, max_length=50, description="Who is in it: ids, @usernames or +phones")
        ],
    ) -> GroupMade:
        """Make a group and put people into it. They are told by Telegram."""
        async with self._line.open() as api:
            made = await api.create_group(title, list(dict.fromkeys(user_ids)))
        return GroupMade(chat=ChatEntry.of(made.chat), left_out=[str(one) for one in made.left_out])
