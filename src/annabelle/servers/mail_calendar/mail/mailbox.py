"""Interface of a mailbox, with its mails, drafts, labels and filters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class MailInvitation:
    """Event in the calendar part of a mail."""

    summary: str
    start: str | None
    end: str | None
    organizer: str | None
    uid: str | None
    location: str | None = None
    method: str | None = None


@dataclass(frozen=True, slots=True)
class MailAttachment:
    """A file in a mail. Its id is its position in the mail, which is stable."""

    id: str
    name: str
    content_type: str
    size: int


@dataclass(frozen=True, slots=True)
class AttachmentContent:
    name: str
    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class MessageSummary:
    id: str
    thread_id: str
    sender: str
    to: str
    subject: str
    date: datetime | None
    snippet: str
    labels: tuple[str, ...]
    has_attachments: bool = False
    cc: str = ""
    reply_to: str = ""


@dataclass(frozen=True, slots=True)
class MailBody:
    text: str
    attachments: tuple[MailAttachment, ...] = ()
    invitation: MailInvitation | None = None


@dataclass(frozen=True, slots=True)
class MailHeaders:
    sender: str = ""
    to: str = ""
    cc: str = ""
    bcc: str = ""
    reply_to: str = ""
    subject: str = ""
    date: datetime | None = None
    message_id: str = ""
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MailMessage:
    summary: MessageSummary
    headers: MailHeaders
    content: MailBody
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class FoundMails:
    """Search results, newest first, and the next page's token."""

    messages: list[MessageSummary]
    next_page: str | None = None
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class ArrivedMails:
    """Mails after a cursor, oldest first, and the next cursor."""

    messages: list[MessageSummary]
    cursor: str
    more: bool = False
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class SendOutcome:
    id: str | None
    thread_id: str | None = None
    already: bool = False
    """Whether an earlier attempt had sent it, so that it was not sent again."""
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class MailDraft:
    id: str
    message_id: str | None
    to: str
    subject: str
    snippet: str
    date: datetime | None = None


@dataclass(frozen=True, slots=True)
class MailLabel:
    id: str
    name: str
    kind: Literal["system", "user"]


@dataclass(frozen=True, slots=True)
class FilterCriteria:
    sender: str | None = None
    to: str | None = None
    subject: str | None = None
    query: str | None = None
    has_attachment: bool | None = None
    size: int | None = None
    size_comparison: Literal["larger", "smaller"] | None = None


@dataclass(frozen=True, slots=True)
class FilterAction:
    add_label_ids: tuple[str, ...] = ()
    remove_label_ids: tuple[str, ...] = ()
    forward: str | None = None


@dataclass(frozen=True, slots=True)
class MailFilter:
    id: str
    criteria: FilterCriteria
    action: FilterAction


class Mailbox(Protocol):
    """A user's mailbox. Its ids stay valid after a restart."""

    @property
    def address(self) -> str: ...

    @property
    def rejected(self) -> bool: ...

    @property
    def filters_note(self) -> str | None:
        """What the user should know about filters of this mailbox."""
        ...

    async def find(self, query: str, labels: tuple[str, ...], count: int, page_token: str | None) -> FoundMails: ...

    async def read(self, message_id: str) -> MailMessage: ...

    async def list_arrivals(self, cursor: str | None, count: int) -> ArrivedMails: ...

    async def attachment(self, message_id: str, attachment_id: str, max_bytes: int) -> AttachmentContent: ...

    async def send(self, mail: EmailMessage, thread_id: str | None) -> SendOutcome:
        """Send a mail, unless one with its Message-ID was sent before."""
        ...

    async def trash(self, message_id: str) -> str:
        """Move a mail to the trash. Returns its new id."""
        ...

    async def relabel(self, message_id: str, add: tuple[str, ...], remove: tuple[str, ...]) -> tuple[str, list[str]]:
        """Change labels. Returns the new id and labels."""
        ...

    async def drafts(self, count: int) -> list[MailDraft]: ...

    async def create_draft(self, mail: EmailMessage, thread_id: str | None) -> MailDraft: ...

    async def replace_draft(self, draft_id: str, mail: EmailMessage) -> MailDraft:
        """Replace a draft. It stays in its thread."""
        ...

    async def send_draft(self, draft_id: str) -> SendOutcome: ...

    async def delete_draft(self, draft_id: str) -> None: ...

    async def labels(self) -> list[MailLabel]: ...

    async def create_label(self, name: str) -> MailLabel: ...

    async def delete_label(self, label_id: str) -> MailLabel: ...

    async def filters(self) -> list[MailFilter]: ...

    async def filter(self, filter_id: str) -> MailFilter: ...

    async def create_filter(self, criteria: FilterCriteria, action: FilterAction) -> MailFilter: ...

    async def delete_filter(self, filter_id: str) -> None: ...

    async def close(self) -> None: ...
