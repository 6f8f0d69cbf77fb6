"""Tools that list and read mails and save their attachments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import write_atomically
from annabelle.core.result_text import for_model, read_on
from annabelle.servers.kit import Result, current_call, tool
from annabelle.servers.mail_calendar.mail.mail_context import Labels, MailContext, MailToolGroup, MessageId
from annabelle.servers.mail_calendar.mail.mailbox import MailAttachment, MailInvitation, MailMessage, MessageSummary


class MailHead(Result):
    id: str
    thread_id: str
    sender: str = Field(description="Who wrote it")
    to: str
    cc: str | None = None
    reply_to: str | None = Field(default=None, description="Who gets an answer, when it is not who wrote it")
    subject: str
    date: str | None = Field(default=None, description="When it was written, in UTC")
    labels: list[str]


class MailLine(MailHead):
    """A mail as a line of a list."""

    snippet: str
    unread: bool
    has_attachments: bool

    def to_line(self) -> str:
        marks = "".join([" [unread]" if self.unread else "", " [files]" if self.has_attachments else ""])
        name = for_model(f" (id {self.id})")
        return f"{self.date or 'no date'} {self.sender}: {self.subject}{marks}{name}\n  {self.snippet}"


def to_mail_line(summary: MessageSummary) -> MailLine:
    headers = summary.headers
    return MailLine(
        id=summary.id,
        thread_id=summary.thread_id,
        sender=headers.sender,
        to=_shorten(headers.to),
        cc=_shorten(headers.cc) or None,
        reply_to=headers.reply_to if headers.reply_to not in ("", headers.sender) else None,
        subject=_shorten(headers.subject),
        date=summary.date.isoformat() if summary.date else None,
        snippet=summary.snippet[:200],
        labels=list(summary.labels),
        unread="UNREAD" in summary.labels,
        has_attachments=summary.has_attachments,
    )


def _shorten(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:299]}…"


class _CursorFile(BaseModel):
    cursors: dict[str, str] = Field(default_factory=dict[str, str])


class NewMailCursors:
    """Cursors of new mail by agent and account. If the file cannot be read, mail is shown again rather than lost."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, reader: str) -> str | None:
        return self._load().cursors.get(reader)

    def write(self, reader: str, cursor: str) -> None:
        whole = self._load()
        whole.cursors[reader] = cursor
        try:
            write_atomically(self._file, whole.model_dump_json(indent=2))
        except OSError as error:
            raise StorageTrouble("What was seen of the mail can not be kept: the disk refuses it.") from error

    def _load(self) -> _CursorFile:
        try:
            return _CursorFile.model_validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return _CursorFile()


_SHOWN_BODY = 20_000
_NEW_AT_ONCE = 50


class MailList(Result):
    emails: list[MailLine]
    next_page_token: str | None = Field(default=None, description="Give it as page_token to see older ones")
    notice: str | None = None

    def to_text(self) -> str:
        lines = [line.to_line() for line in self.emails] or ["No mails."]
        if self.next_page_token:
            lines.append(read_on(f"[More: page_token {self.next_page_token}]"))
        return "\n".join([*lines, *([f"[{self.notice}]"] if self.notice else [])])


class NewMail(Result):
    emails: list[MailLine]
    count: int
    more: bool = Field(default=False, description="There are more than are shown here")
    cleared: bool = Field(description="Whether the next call begins after these")
    notice: str | None = None

    def to_text(self) -> str:
        lines = [line.to_line() for line in self.emails] or ["No new mails."]
        if self.more:
            lines.append("[There are more new mails than these.]")
        return "\n".join([*lines, *([f"[{self.notice}]"] if self.notice else [])])


class MailContent(MailHead):
    """A whole mail."""

    body: str
    body_chars: int
    rest: str | None = Field(default=None, description="Workspace path of the whole text when it was cut")
    attachments: list[MailAttachment]
    invitation: MailInvitation | None = None
    notice: str | None = None


class MailReadTools(MailToolGroup):
    def __init__(self, context: MailContext) -> None:
        super().__init__(context)
        self._seen = NewMailCursors(context.config.state / "seen.json")

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_emails(
        self,
        query: Annotated[
            str | None,
            Field(
                description="Gmail search: from:ada subject:invoice is:unread has:attachment newer_than:7d in:sent …",
                max_length=2_000,
            ),
        ] = None,
        max_results: Annotated[int, Field(description="How many at most", ge=1, le=100)] = 20,
        label_ids: Labels = None,
        page_token: Annotated[
            str | None, Field(description="next_page_token of the call before, for older mails", max_length=1_000)
        ] = None,
    ) -> MailList:
        """List mails, newest first, with sender, subject, date and the beginning of the text. Searches everything but
        trash and spam unless a place is named."""
        found = await self._context.mailbox.find(query or "", tuple(label_ids or ()), max_results, page_token)
        return MailList(
            emails=[to_mail_line(one) for one in found.messages], next_page_token=found.next_page, notice=found.notice
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_email(self, message_id: MessageId) -> MailContent:
        """Read a whole mail: headers, text, attachments, and what it invites to. It is not marked as read."""
        return await self._show_mail(await self._context.mailbox.read(message_id))

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def get_new_emails(
        self,
        clear: Annotated[
            bool | Literal["true", "false"],
            Field(description="true: the next call begins after these; false: they are given again"),
        ] = False,
    ) -> NewMail:
        """List what came into the inbox since the last call with clear true, oldest first; the first time, what came
        within a day. In a mailbox without filters of its own, the user's filters are applied first."""
        mailbox = self._context.mailbox
        reader = f"{current_call().agent_id or 'people'} {mailbox.address}"
        arrived = await mailbox.list_arrivals(self._seen.read(reader), _NEW_AT_ONCE)
        cleared = clear is True or clear == "true"
        if cleared:
            self._seen.write(reader, arrived.cursor)
        lines = [to_mail_line(one) for one in arrived.messages]
        return NewMail(emails=lines, count=len(lines), more=arrived.more, cleared=cleared, notice=arrived.notice)

    async def _show_mail(self, message: MailMessage) -> MailContent:
        summary, headers, content = message.summary, message.summary.headers, message.content
        body = await self._context.overflow.show_text(content.text, _SHOWN_BODY, "mail.txt")
        return MailContent(
            id=summary.id,
            thread_id=summary.thread_id,
            sender=headers.sender,
            to=headers.to,
            cc=headers.cc or None,
            reply_to=headers.reply_to or None,
            subject=headers.subject,
            date=summary.date.isoformat() if summary.date else None,
            labels=list(summary.labels),
            body=body.text,
            body_chars=body.total_chars,
            rest=body.rest,
            attachments=list(content.attachments[:100]),
            invitation=content.invitation,
            notice=message.notice,
        )


_FOLDER = "Downloads"
_ATTACHMENTS_LISTED = 200


class AttachmentList(Result):
    message_id: str
    attachments: list[MailAttachment]


class AttachmentSaved(Result):
    path: str = Field(description="Where it is in the workspace")
    size: int
    content_type: str

    def to_text(self) -> str:
        return f"Saved as {self.path} ({self.content_type}, {self.size} bytes)."


class AttachmentTools(MailToolGroup):
    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_attachments(self, message_id: MessageId) -> AttachmentList:
        """List the files in a mail, with the ids get_attachment takes."""
        found = (await self._context.mailbox.read(message_id)).content.attachments
        return AttachmentList(message_id=message_id, attachments=list(found[:_ATTACHMENTS_LISTED]))

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def get_attachment(
        self,
        message_id: MessageId,
        attachment_id: Annotated[
            str, Field(description="Id from list_attachments", min_length=1, max_length=200, pattern=r"^[\w.=-]+$")
        ],
    ) -> AttachmentSaved:
        """Save a file of a mail in the folder Downloads of the workspace. Nothing there is replaced."""
        limit = self._context.config.attachment_max_bytes
        content = await self._context.mailbox.attachment(message_id, attachment_id, limit)
        kept = await self._context.workspace.keep(_FOLDER, content.name, content.data)
        return AttachmentSaved(path=kept.path, size=kept.size, content_type=content.content_type)
