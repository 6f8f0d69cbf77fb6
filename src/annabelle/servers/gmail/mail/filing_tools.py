"""Tools that put mail away and mark it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.mail.desk import Desk, Labels, MessageId
from annabelle.servers.kit import Result, tool


class Trashed(Result):
    id: str = Field(description="Id of the mail in the trash")
    trashed: bool = True

    def text(self) -> str:
        return f"The mail is in the trash now (id {self.id})."


class Relabelled(Result):
    id: str = Field(description="Id of the mail from now on; it changes where a label is a folder")
    labels: list[str]


class FilingTools:
    """delete_email, mark_read and modify_labels."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_email(self, message_id: MessageId) -> Trashed:
        """Move a mail to the trash, from where the user can bring it back for a while."""
        return Trashed(id=await self._desk.mailbox.trash(message_id))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def mark_read(
        self, message_id: MessageId, read: Annotated[bool, Field(description="true for read, false for unread")]
    ) -> Relabelled:
        """Mark a mail as read or unread."""
        unread = ("UNREAD",)
        add, remove = ((), unread) if read else (unread, ())
        now, labels = await self._desk.mailbox.relabel(message_id, add, remove)
        return Relabelled(id=now, labels=labels)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def modify_labels(
        self, message_id: MessageId, add_label_ids: Labels = None, remove_label_ids: Labels = None
    ) -> Relabelled:
        """Add labels to a mail and remove others: UNREAD, STARRED, INBOX (removing it archives), or the user's own.
        In a mailbox without Google a label is a folder: adding one copies the mail, adding and removing moves it."""
        add, remove = tuple(add_label_ids or ()), tuple(remove_label_ids or ())
        if not add and not remove:
            raise InvalidArguments("Name a label to add or to remove.", field="add_label_ids")
        both = {label.lower() for label in add} & {label.lower() for label in remove}
        if both:
            raise InvalidArguments("The same label can not be added and removed.", field="remove_label_ids")
        now, labels = await self._desk.mailbox.relabel(message_id, add, remove)
        return Relabelled(id=now, labels=labels)
