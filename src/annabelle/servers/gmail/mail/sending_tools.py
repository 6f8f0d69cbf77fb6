"""Tools that send mail."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.mail.desk import (
    Body,
    Copies,
    Desk,
    Files,
    HiddenCopies,
    IsHtml,
    MessageId,
    Subject,
    To,
)
from annabelle.servers.gmail.mail.models import Sent
from annabelle.servers.gmail.mail.outgoing import Outgoing, compose, new_message_id
from annabelle.servers.gmail.mail.replying import reply_to
from annabelle.servers.kit import Result, current_call, tool


class SentMail(Result):
    """A mail that was sent."""

    id: str | None = Field(default=None, description="Id of the copy among the sent mails")
    thread_id: str | None = None
    to: list[str]
    subject: str
    already_sent: bool = Field(default=False, description="An earlier try had sent it; it was not sent again")
    notice: str | None = None

    def text(self) -> str:
        how = "had been sent already" if self.already_sent else "was sent"
        known = f" (id {self.id})" if self.id else ""
        return f"“{self.subject}” {how} to {', '.join(self.to)}{known}. {self.notice or ''}".strip()


class SendingTools:
    """send_email and reply_email."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

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
        outgoing = Outgoing.of(to, subject, body, cc, bcc, is_html=is_html)
        if not (outgoing.to or outgoing.cc or outgoing.bcc):
            raise InvalidArguments("The mail needs an address to go to.", field="to")
        return await self._send(await self._desk.with_files(outgoing, attachments), "send_email")

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
        mailbox = self._desk.mailbox
        message = await mailbox.read(message_id)
        outgoing = reply_to(message, mailbox.address, body, is_html=is_html, everyone=reply_all)
        return await self._send(await self._desk.with_files(outgoing, attachments), "reply_email")

    async def _send(self, outgoing: Outgoing, purpose: str) -> SentMail:
        mailbox = self._desk.mailbox
        message_id = new_message_id(mailbox.address, current_call().call_id, purpose)
        sent = await mailbox.send(compose(outgoing, mailbox.address, message_id), outgoing.thread_id)
        return sent_mail(sent, outgoing)


def sent_mail(sent: Sent, outgoing: Outgoing) -> SentMail:
    people = (*outgoing.to, *outgoing.cc, *outgoing.bcc)
    return SentMail(
        id=sent.id,
        thread_id=sent.thread_id,
        to=[one.addr_spec for one in people],
        subject=outgoing.subject,
        already_sent=sent.already,
        notice=sent.notice,
    )
