"""Tools that look at mail."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field

from annabelle.servers.gmail.mail.desk import Desk, Labels, MessageId
from annabelle.servers.gmail.mail.lines import MailLine, mail_line
from annabelle.servers.gmail.mail.models import Message
from annabelle.servers.gmail.mail.seen import Seen
from annabelle.servers.kit import Result, current_call, tool

_SHOWN_BODY = 20_000
_NEW_AT_ONCE = 50


class MailList(Result):
    emails: list[MailLine]
    next_page_token: str | None = Field(default=None, description="Give it as page_token to see older ones")
    notice: str | None = None

    def text(self) -> str:
        lines = [line.line() for line in self.emails] or ["No mails."]
        if self.next_page_token:
            lines.append(f"[More: page_token {self.next_page_token}]")
        return "\n".join([*lines, *([f"[{self.notice}]"] if self.notice else [])])


class NewMail(Result):
    emails: list[MailLine]
    count: int
    more: bool = Field(default=False, description="There are more than are shown here")
    cleared: bool = Field(description="Whether the next call begins after these")
    notice: str | None = None

    def text(self) -> str:
        lines = [line.line() for line in self.emails] or ["No new mails."]
        if self.more:
            lines.append("[There are more new mails than these.]")
        return "\n".join([*lines, *([f"[{self.notice}]"] if self.notice else [])])


class AttachmentLine(Result):
    attachment_id: str
    name: str
    content_type: str
    size: int


class InvitationShown(Result):
    """What the mail invites to, as its sender wrote it."""

    summary: str
    start: str | None = None
    end: str | None = None
    organizer: str | None = None
    uid: str | None = None
    location: str | None = None
    method: str | None = None


class MailContent(Result):
    """A whole mail."""

    id: str
    thread_id: str
    sender: str = Field(description="Who wrote it")
    to: str
    cc: str | None = None
    reply_to: str | None = None
    subject: str
    date: str | None = None
    labels: list[str]
    body: str
    body_chars: int
    rest: str | None = Field(default=None, description="Workspace path of the whole text when it was cut")
    attachments: list[AttachmentLine]
    invitation: InvitationShown | None = None
    notice: str | None = None


class ReadingTools:
    """list_emails, get_email and get_new_emails."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._seen = Seen(desk.config.state / "seen.json")

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
        found = await self._desk.mailbox.find(query or "", tuple(label_ids or ()), max_results, page_token)
        return MailList(
            emails=[mail_line(one) for one in found.messages], next_page_token=found.next_page, notice=found.notice
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_email(self, message_id: MessageId) -> MailContent:
        """Read a whole mail: headers, text, attachments, and what it invites to. It is not marked as read."""
        return await self._shown(await self._desk.mailbox.read(message_id))

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
        mailbox = self._desk.mailbox
        agent = current_call().agent_id or "people"
        arrived = await mailbox.arrived(self._seen.read(agent, mailbox.address), _NEW_AT_ONCE)
        cleared = clear is True or clear == "true"
        if cleared:
            self._seen.write(agent, mailbox.address, arrived.cursor)
        lines = [mail_line(one) for one in arrived.messages]
        return NewMail(emails=lines, count=len(lines), more=arrived.more, cleared=cleared, notice=arrived.notice)

    async def _shown(self, message: Message) -> MailContent:
        summary, headers, content = message.summary, message.headers, message.content
        body = await self._desk.overflow.show(content.text, _SHOWN_BODY, "mail.txt")
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
            attachments=[
                AttachmentLine(attachment_id=one.id, name=one.name, content_type=one.content_type, size=one.size)
                for one in content.attachments[:100]
            ],
            invitation=InvitationShown(**asdict(content.invitation)) if content.invitation else None,
            notice=message.notice,
        )
