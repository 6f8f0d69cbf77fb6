"""What the tools ask of a mailbox."""

from __future__ import annotations

from email.message import EmailMessage
from typing import Protocol

from annabelle.servers.gmail.mail.models import (
    Arrived,
    AttachmentContent,
    Draft,
    Filter,
    FilterAction,
    FilterCriteria,
    Found,
    Label,
    Message,
    Sent,
)


class Mailbox(Protocol):
    """A person's mail. Every id it gives is one it takes back, also after a restart."""

    @property
    def address(self) -> str:
        """The person's own address."""
        ...

    @property
    def rejected(self) -> bool:
        """Whether the last sign-in was refused."""
        ...

    @property
    def filters_note(self) -> str | None:
        """What a person should know about filters here."""
        ...

    async def find(self, query: str, labels: tuple[str, ...], count: int, page_token: str | None) -> Found: ...

    async def read(self, message_id: str) -> Message: ...

    async def arrived(self, cursor: str | None, count: int) -> Arrived: ...

    async def attachment(self, message_id: str, attachment_id: str, max_bytes: int) -> AttachmentContent: ...

    async def send(self, mail: EmailMessage, thread_id: str | None) -> Sent:
        """Send it, unless a mail with its Message-ID has been sent before."""
        ...

    async def trash(self, message_id: str) -> str:
        """Move it to the trash, where it is kept for a while; the id it has there."""
        ...

    async def relabel(self, message_id: str, add: tuple[str, ...], remove: tuple[str, ...]) -> tuple[str, list[str]]:
        """The id and the labels it has afterwards."""
        ...

    async def drafts(self, count: int) -> list[Draft]: ...

    async def create_draft(self, mail: EmailMessage, thread_id: str | None) -> Draft: ...

    async def replace_draft(self, draft_id: str, mail: EmailMessage) -> Draft:
        """Write a draft anew; it stays in its thread."""
        ...

    async def send_draft(self, draft_id: str) -> Sent: ...

    async def delete_draft(self, draft_id: str) -> None: ...

    async def labels(self) -> list[Label]: ...

    async def create_label(self, name: str) -> Label: ...

    async def delete_label(self, label_id: str) -> Label: ...

    async def filters(self) -> list[Filter]: ...

    async def filter(self, filter_id: str) -> Filter: ...

    async def create_filter(self, criteria: FilterCriteria, action: FilterAction) -> Filter: ...

    async def delete_filter(self, filter_id: str) -> None: ...

    async def close(self) -> None: ...
