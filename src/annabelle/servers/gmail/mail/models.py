"""A mailbox's things as the tools see them, whoever keeps the mailbox."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a calendar part of a mail invites to."""

    summary: str
    start: str | None
    end: str | None
    organizer: str | None
    uid: str | None
    location: str | None = None
    method: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file in a mail. The id is its place in the mail, and stays."""

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
    """A mail as a line of a list."""

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
class Content:
    """What is inside a mail: its text, its files, and what it invites to."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    invitation: Invitation | None = None


@dataclass(frozen=True, slots=True)
class Headers:
    """The headers that matter, decoded."""

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
class Message:
    """A whole mail."""

    summary: MessageSummary
    headers: Headers
    content: Content
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Mails of a search, newest first, and how to go on."""

    messages: list[MessageSummary]
    next_page: str | None = None
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Arrived:
    """Mails that came after a cursor, oldest first, and the cursor behind the last of them."""

    messages: list[MessageSummary]
    cursor: str
    more: bool = False
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A mail that is on its way."""

    id: str | None
    thread_id: str | None = None
    already: bool = False
    """It had been sent by an earlier try, and was not sent again."""
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    id: str
    message_id: str | None
    to: str
    subject: str
    snippet: str
    date: datetime | None = None


@dataclass(frozen=True, slots=True)
class Label:
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
class Filter:
    id: str
    criteria: FilterCriteria
    action: FilterAction
