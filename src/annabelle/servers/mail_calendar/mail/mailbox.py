"""Interface of a mailbox, with its mails, drafts, labels and filters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from annabelle.servers.kit import Result


class MailInvitation(Result):
    """What the mail invites to, as its sender wrote it."""

    summary: str
    start: str | None = None
    end: str | None = None
    organizer: str | None = None
    uid: str | None = None
    location: str | None = None
    method: str | None = None


class MailAttachment(Result):
    """A file in a mail. Its id is its position in the mail, which is stable."""

    attachment_id: str
    name: str
    content_type: str
    size: int


@dataclass(frozen=True, slots=True)
class AttachmentContent:
    name: str
    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class MailHeaders:
    sender: str = ""
    to: str = ""
    cc: str = ""
    reply_to: str = ""
    subject: str = ""
    date: datetime | None = None
    message_id: str = ""
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MessageSummary:
    """A mail without its content. `date` is when it arrived if the mail itself has no date."""

    id: str
    thread_id: str
    headers: MailHeaders
    date: datetime | None
    snippet: str
    labels: tuple[str, ...]
    has_attachments: bool = False


@dataclass(frozen=True, slots=True)
class MailBody:
    text: str
    attachments: tuple[MailAttachment, ...] = ()
    invitation: MailInvitation | None = None


@dataclass(frozen=True, slots=True)
class MailMessage:
    summary: MessageSummary
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


class SendOutcome(Result):
    id: str | None = Field(default=None, description="Id of the copy among the sent mails")
    thread_id: str | None = None
    already_sent: bool = Field(default=False, description="An earlier try had sent it; it was not sent again")
    notice: str | None = None


class MailDraft(Result):
    draft_id: str
    message_id: str | None = Field(default=None, description="For get_email, to read the whole draft")
    to: str
    subject: str
    snippet: str
    date: str | None = None

    @classmethod
    def from_summary(cls, draft_id: str, summary: MessageSummary) -> MailDraft:
        return cls(
            draft_id=draft_id,
            message_id=summary.id or None,
            to=summary.headers.to[:300],
            subject=summary.headers.subject[:300],
            snippet=summary.snippet[:200],
            date=summary.date.isoformat() if summary.date else None,
        )


class MailLabel(Result):
    id: str
    name: str
    kind: Literal["system", "user"]


class FilterCriteria(BaseModel):
    model_config = ConfigDict(frozen=True)

    sender: str | None = Field(default=None, serialization_alias="from")
    to: str | None = None
    subject: str | None = None
    query: str | None = None
    has_attachment: bool | None = None
    size: int | None = None
    size_comparison: Literal["larger", "smaller"] | None = None

    def to_fields(self) -> dict[str, str | int | bool]:
        """The criteria that are set, named as in a call."""
        return self.model_dump(by_alias=True, exclude_none=True, include=set(FilterCriteria.model_fields))


class FilterAction(BaseModel):
    """What is done with them."""

    model_config = ConfigDict(extra="forbid")

    add_label_ids: list[str] | None = Field(default=None, max_length=20, description="Labels they get")
    remove_label_ids: list[str] | None = Field(
        default=None, max_length=20, description="Labels they lose; INBOX archives, UNREAD marks as read"
    )
    forward: str | None = Field(default=None, max_length=320, description="Address they are forwarded to; Google only")

    def to_fields(self) -> dict[str, str | list[str]]:
        """What there is to do, named as in a call."""
        return {name: value for name, value in self.model_dump().items() if value}


class MailFilter(Result):
    id: str
    criteria: dict[str, str | int | bool]
    action: dict[str, str | list[str]]
    notice: str | None = None


class Mailbox(Protocol):
    """A user's mailbox. Its ids stay valid after a restart."""

    address: str
    filters_note: str | None
    """What the user should know about filters of this mailbox."""

    @property
    def rejected(self) -> bool: ...

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
