"""Mails as results of tools."""

from __future__ import annotations

from pydantic import Field

from annabelle.servers.gmail.mail.models import MessageSummary
from annabelle.servers.kit import Result


class MailLine(Result):
    """A mail as a line of a list."""

    id: str
    thread_id: str
    sender: str = Field(description="Who wrote it")
    to: str
    cc: str | None = None
    reply_to: str | None = Field(default=None, description="Who gets an answer, when it is not who wrote it")
    subject: str
    date: str | None = Field(default=None, description="When it was written, in UTC")
    snippet: str
    labels: list[str]
    unread: bool
    has_attachments: bool

    def line(self) -> str:
        marks = "".join([" [unread]" if self.unread else "", " [files]" if self.has_attachments else ""])
        return f"{self.date or 'no date'} {self.sender}: {self.subject}{marks} (id {self.id})\n  {self.snippet}"


def mail_line(summary: MessageSummary) -> MailLine:
    return MailLine(
        id=summary.id,
        thread_id=summary.thread_id,
        sender=summary.sender,
        to=_cut(summary.to),
        cc=_cut(summary.cc) or None,
        reply_to=summary.reply_to if summary.reply_to not in ("", summary.sender) else None,
        subject=_cut(summary.subject),
        date=summary.date.isoformat() if summary.date else None,
        snippet=summary.snippet[:200],
        labels=list(summary.labels),
        unread="UNREAD" in summary.labels,
        has_attachments=summary.has_attachments,
    )


def _cut(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:299]}…"
