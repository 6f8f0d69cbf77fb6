"""Tools for labels."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from annabelle.servers.gmail.mail.desk import Desk
from annabelle.servers.gmail.mail.models import Label
from annabelle.servers.gmail.mail.recipients import one_line
from annabelle.servers.kit import Result, tool

_LISTED = 500


class LabelLine(Result):
    id: str
    name: str
    kind: Literal["system", "user"]


class LabelList(Result):
    labels: list[LabelLine]

    def text(self) -> str:
        return "\n".join(f"{one.name} (id {one.id}, {one.kind})" for one in self.labels)


class LabelGone(Result):
    id: str
    name: str
    deleted: bool = True


class LabelTools:
    """list_labels, create_label and delete_label."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_labels(self) -> LabelList:
        """List the labels that mails can have: those of the mailbox (INBOX, UNREAD, …) and the user's own."""
        labels = await self._desk.mailbox.labels()
        return LabelList(labels=[_line(label) for label in labels[:_LISTED]])

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def create_label(
        self,
        name: Annotated[
            str, Field(description="Name; Work/Travel is Travel inside of Work", min_length=1, max_length=200)
        ],
    ) -> LabelLine:
        """Make a label. In a mailbox without Google it is a folder."""
        return _line(await self._desk.mailbox.create_label(one_line(name, "name")))

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_label(
        self, label_id: Annotated[str, Field(description="Id or name of the label", min_length=1, max_length=300)]
    ) -> LabelGone:
        """Delete one of the user's labels. Its mails stay; where a label is a folder they go to the archive."""
        label = await self._desk.mailbox.delete_label(one_line(label_id, "label_id"))
        return LabelGone(id=label.id, name=label.name)


def _line(label: Label) -> LabelLine:
    return LabelLine(id=label.id, name=label.name, kind=label.kind)
