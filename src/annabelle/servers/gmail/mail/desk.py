"""What all mail tools work with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import TooLarge
from annabelle.servers.gmail.config import GmailConfig
from annabelle.servers.gmail.mail.mailbox import Mailbox
from annabelle.servers.gmail.mail.mailboxes import Mailboxes
from annabelle.servers.gmail.mail.outgoing import FileToSend, Outgoing
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.overflow import Overflow

MAX_FILES = 20

MessageId = Annotated[
    str,
    Field(description="Id of the mail, from list_emails", min_length=1, max_length=1_000, pattern=r"^[\w.=-]+$"),
]
DraftId = Annotated[
    str, Field(description="Id of the draft, from list_drafts", min_length=1, max_length=1_000, pattern=r"^[\w.=-]+$")
]
To = Annotated[
    str,
    Field(description="Addresses, several with commas: ada@example.com, Bob <bob@example.com>", max_length=10_000),
]
Copies = Annotated[str | None, Field(description="Addresses that get a copy", max_length=10_000)]
HiddenCopies = Annotated[
    str | None, Field(description="Addresses that get a copy without the others seeing it", max_length=10_000)
]
Subject = Annotated[str, Field(description="Subject, one line", max_length=1_000)]
Body = Annotated[str, Field(description="The text of the mail", max_length=500_000)]
IsHtml = Annotated[bool, Field(description="The body is HTML; a plain version is added")]
Files = Annotated[
    list[str] | None, Field(description="Paths of files in the workspace to attach", max_length=MAX_FILES)
]
Labels = Annotated[list[str] | None, Field(description="Ids or names of labels, from list_labels", max_length=50)]


@dataclass(frozen=True, slots=True)
class Desk:
    """The mailboxes, the workspace, and the limits."""

    config: GmailConfig
    mailboxes: Mailboxes
    workspace: Workspace
    overflow: Overflow

    @classmethod
    def of(cls, config: GmailConfig, mailboxes: Mailboxes) -> Desk:
        workspace = Workspace(config.files)
        return cls(config, mailboxes, workspace, Overflow(workspace))

    @property
    def mailbox(self) -> Mailbox:
        return self.mailboxes.current()

    async def with_files(self, outgoing: Outgoing, paths: list[str] | None) -> Outgoing:
        """The mail with files of the workspace; together they keep to the limit for one mail."""
        files: list[FileToSend] = []
        left = self.config.attachment_max_bytes
        for path in paths or []:
            content = await self.workspace.read(path, self.config.attachment_max_bytes, "attachments")
            left -= len(content.data)
            if left < 0:
                raise TooLarge(
                    f"The attachments together have more than {self.config.attachment_max_bytes} bytes.",
                    hint="Send fewer or smaller ones.",
                    field="attachments",
                )
            files.append(FileToSend(content.path.rsplit("/", 1)[-1], content.data))
        return replace(outgoing, files=tuple(files)) if files else outgoing
