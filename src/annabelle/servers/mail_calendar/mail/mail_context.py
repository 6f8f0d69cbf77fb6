"""Shared by the mail tools: connected mailbox, workspace, limits and parameter types."""

from __future__ import annotations

from dataclasses import dataclass, replace
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from annabelle.core.connections import MailAccount
from annabelle.core.errors import TooLarge
from annabelle.servers.kit import current_call, deferred_module
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.mail_calendar.accounts import Accounts
from annabelle.servers.mail_calendar.config import MailCalendarConfig, ServerAccess, password_refused
from annabelle.servers.mail_calendar.google_session import GoogleSession
from annabelle.servers.mail_calendar.mail.mailbox import Mailbox
from annabelle.servers.mail_calendar.mail.outgoing_mail import FileToSend, OutgoingMail, compose_mail, new_message_id

if TYPE_CHECKING:
    from annabelle.servers.mail_calendar.mail import google_mailbox, imap_mailbox
else:
    google_mailbox = deferred_module("annabelle.servers.mail_calendar.mail.google_mailbox")
    imap_mailbox = deferred_module("annabelle.servers.mail_calendar.mail.imap_mailbox")


class ConnectedMailbox:
    """Keeps the mailbox as long as its account stays connected."""

    def __init__(self, accounts: Accounts, state: Path, access: ServerAccess) -> None:
        self._accounts, self._state, self._access = accounts, state, access
        self._account: GoogleSession | MailAccount | None = None
        self._mailbox: Mailbox | None = None
        self._former: list[Mailbox] = []

    def current(self) -> Mailbox:
        """The connected mailbox. Raises Unavailable, with the command to run, if there is none."""
        account = self._accounts.require()
        if self._mailbox is None or account is not self._account:
            if self._mailbox is not None:
                self._former.append(self._mailbox)  # a call may still use it
            self._account = account
            self._mailbox = (
                google_mailbox.GoogleMailbox(account)
                if isinstance(account, GoogleSession)
                else imap_mailbox.ImapMailbox(account, self._state, self._access)
            )
        return self._mailbox

    async def describe_missing(self) -> str | None:
        """Why mail does not work, as far as known, with the command that fixes it."""
        told = await self._accounts.describe_missing()
        if told is not None or self._mailbox is None or isinstance(self._account, GoogleSession):
            return told
        if not self._mailbox.rejected or self._account is not self._accounts.mail():
            return None
        refused = password_refused()
        return f"{refused.message} {refused.hint}"

    async def close(self) -> None:
        held, self._former = [*self._former, *([self._mailbox] if self._mailbox else [])], []
        self._mailbox = self._account = None
        for mailbox in held:
            await mailbox.close()


MAX_FILES = 20

_Id = Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"^[\w.=-]+$")]
MessageId = Annotated[_Id, Field(description="Id of the mail, from list_emails")]
DraftId = Annotated[_Id, Field(description="Id of the draft, from list_drafts")]
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
class MailContext:
    config: MailCalendarConfig
    mailboxes: ConnectedMailbox
    workspace: Workspace
    overflow: Overflow

    @classmethod
    def create(cls, config: MailCalendarConfig, mailboxes: ConnectedMailbox) -> MailContext:
        workspace = Workspace(config.files)
        return cls(config, mailboxes, workspace, Overflow(workspace))

    @property
    def mailbox(self) -> Mailbox:
        return self.mailboxes.current()

    async def compose(self, outgoing: OutgoingMail, paths: list[str] | None, purpose: str) -> EmailMessage:
        """Compose a mail with files of the workspace. The same call always makes the same Message-ID."""
        own = self.mailbox.address
        message_id = new_message_id(own, current_call().call_id, purpose)
        return compose_mail(await self._attach_files(outgoing, paths), own, message_id)

    async def _attach_files(self, outgoing: OutgoingMail, paths: list[str] | None) -> OutgoingMail:
        """Add attachments from the workspace, within the size limit of one mail."""
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


class MailToolGroup:
    """A group of tools that work on the connected mailbox."""

    def __init__(self, context: MailContext) -> None:
        self._context = context
