"""Tools for the files in mails."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.servers.gmail.mail.desk import Desk, MessageId
from annabelle.servers.gmail.mail.reading_tools import AttachmentLine
from annabelle.servers.kit import Result, tool

_FOLDER = "Downloads"
_LISTED = 200


class AttachmentList(Result):
    message_id: str
    attachments: list[AttachmentLine]


class AttachmentSaved(Result):
    path: str = Field(description="Where it is in the workspace")
    size: int
    content_type: str

    def text(self) -> str:
        return f"Saved as {self.path} ({self.content_type}, {self.size} bytes)."


class AttachmentTools:
    """list_attachments and get_attachment."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_attachments(self, message_id: MessageId) -> AttachmentList:
        """List the files in a mail, with the ids get_attachment takes."""
        message = await self._desk.mailbox.read(message_id)
        return AttachmentList(
            message_id=message_id,
            attachments=[
                AttachmentLine(attachment_id=one.id, name=one.name, content_type=one.content_type, size=one.size)
                for one in message.content.attachments[:_LISTED]
            ],
        )

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def get_attachment(
        self,
        message_id: MessageId,
        attachment_id: Annotated[
            str, Field(description="Id from list_attachments", min_length=1, max_length=200, pattern=r"^[\w.=-]+$")
        ],
    ) -> AttachmentSaved:
        """Save a file of a mail in the folder Downloads of the workspace. Nothing there is replaced."""
        limit = self._desk.config.attachment_max_bytes
        content = await self._desk.mailbox.attachment(message_id, attachment_id, limit)
        kept = await self._desk.workspace.keep(_FOLDER, content.name, content.data)
        return AttachmentSaved(path=kept.path, size=kept.size, content_type=content.content_type)
