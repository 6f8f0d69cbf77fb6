"""Tools that send mail, reply, and manage drafts."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.core.result_text import for_model
from annabelle.servers.kit import Result, tool
from annabelle.servers.mail_calendar.mail.mail_context import (
    Body,
    Copies,
    DraftId,
    Files,
    HiddenCopies,
    IsHtml,
    MailToolGroup,
    MessageId,
    Subject,
    To,
)
from annabelle.servers.mail_calendar.mail.mailbox import MailDraft, SendOutcome
from annabelle.servers.mail_calendar.mail.outgoing_mail import OutgoingMail, compose_reply


class SentMail(SendOutcome):
    """A mail that was sent."""

    to: list[str]
    subject: str

    def to_text(self) -> str:
        how = "had been sent already" if self.already_sent else "was sent"
        known = for_model(f" (id {self.id})") if self.id else ""
        return f"“{self.subject}” {how} to {', '.join(self.to)}{known}. {self.notice or ''}".strip()


class MailSendTools(MailToolGroup):
    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def send_email(
        self,
        to: To,
        subject: Subject,
        body: Body,
        cc: Copies = None,
        bcc: HiddenCopies = None,
        is_html: IsHtml = False,
        attachments: Files = None,
    ) -> SentMail:
        """Send a mail from the user's address. It can not be taken back."""
        outgoing = OutgoingMail.from_arguments(to, subject, body, cc, bcc, is_html=is_html)
        if not (outgoing.to or outgoing.cc or outgoing.bcc):
            raise InvalidArguments("The mail needs an address to go to.", field="to")
        return await self._send(outgoing, attachments, "send_email")

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def reply_email(
        self,
        message_id: MessageId,
        body: Body,
        is_html: IsHtml = False,
        reply_all: Annotated[bool, Field(description="Also to everybody else the mail went to")] = False,
        attachments: Files = None,
    ) -> SentMail:
        """Answer a mail in its thread, to whoever it wants answers to. It can not be taken back."""
        mailbox = self._context.mailbox
        message = await mailbox.read(message_id)
        outgoing = compose_reply(message, mailbox.address, body, is_html=is_html, everyone=reply_all)
        return await self._send(outgoing, attachments, "reply_email")

    async def _send(self, outgoing: OutgoingMail, attachments: list[str] | None, purpose: str) -> SentMail:
        mail = await self._context.compose(outgoing, attachments, purpose)
        sent = await self._context.mailbox.send(mail, outgoing.thread_id)
        people = (*outgoing.to, *outgoing.cc, *outgoing.bcc)
        return SentMail(**sent.model_dump(), to=[one.addr_spec for one in people], subject=outgoing.subject)


_LISTED = 50


class DraftList(Result):
    drafts: list[MailDraft]


class DraftDeleted(Result):
    draft_id: str
    deleted: bool = True


class DraftTools(MailToolGroup):
    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_drafts(self) -> DraftList:
        """List the drafts, newest first, at most 50."""
        return DraftList(drafts=await self._context.mailbox.drafts(_LISTED))

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def create_draft(
        self,
        to: To,
        subject: Subject,
        body: Body,
        cc: Copies = None,
        bcc: HiddenCopies = None,
        is_html: IsHtml = False,
        attachments: Files = None,
        reply_to_message_id: Annotated[
            str | None,
            Field(description="Id of a mail this answers, to keep the thread", max_length=1_000, pattern=r"^[\w.=-]+$"),
        ] = None,
    ) -> MailDraft:
        """Write a draft. Nothing is sent until send_draft; show it to the user first."""
        outgoing = OutgoingMail.from_arguments(to, subject, body, cc, bcc, is_html=is_html)
        mailbox = self._context.mailbox
        if reply_to_message_id:
            answer = compose_reply(await mailbox.read(reply_to_message_id), mailbox.address, body, is_html=is_html)
            outgoing = replace(
                outgoing, in_reply_to=answer.in_reply_to, references=answer.references, thread_id=answer.thread_id
            )
        mail = await self._context.compose(outgoing, attachments, "create_draft")
        return await mailbox.create_draft(mail, outgoing.thread_id)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def update_draft(
        self,
        draft_id: DraftId,
        to: To,
        subject: Subject,
        body: Body,
        cc: Copies = None,
        bcc: HiddenCopies = None,
        is_html: IsHtml = False,
        attachments: Files = None,
    ) -> MailDraft:
        """Write a draft anew: everything in it is replaced, its attachments too. It keeps its id and its thread."""
        outgoing = OutgoingMail.from_arguments(to, subject, body, cc, bcc, is_html=is_html)
        mail = await self._context.compose(outgoing, attachments, "update_draft")
        return await self._context.mailbox.replace_draft(draft_id, mail)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def send_draft(self, draft_id: DraftId) -> SendOutcome:
        """Send a draft as it is. It can not be taken back."""
        return await self._context.mailbox.send_draft(draft_id)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_draft(self, draft_id: DraftId) -> DraftDeleted:
        """Delete a draft for good."""
        await self._context.mailbox.delete_draft(draft_id)
        return DraftDeleted(draft_id=draft_id)
