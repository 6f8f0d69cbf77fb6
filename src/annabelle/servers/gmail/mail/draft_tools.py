"""Tools for mails that are not sent yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from annabelle.servers.gmail.mail.desk import Body, Copies, Desk, DraftId, Files, HiddenCopies, IsHtml, Subject, To
from annabelle.servers.gmail.mail.models import Draft
from annabelle.servers.gmail.mail.outgoing import Outgoing, compose, new_message_id
from annabelle.servers.gmail.mail.replying import reply_to
from annabelle.servers.kit import Result, current_call, tool

_LISTED = 50


class DraftLine(Result):
    draft_id: str
    message_id: str | None = Field(default=None, description="For get_email, to read the whole draft")
    to: str
    subject: str
    snippet: str
    date: str | None = None


class DraftList(Result):
    drafts: list[DraftLine]


class DraftSent(Result):
    id: str | None = Field(default=None, description="Id of the copy among the sent mails")
    thread_id: str | None = None
    already_sent: bool = False
    notice: str | None = None


class DraftGone(Result):
    draft_id: str
    deleted: bool = True


class DraftTools:
    """list_drafts, create_draft, update_draft, send_draft and delete_draft."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_drafts(self) -> DraftList:
        """List the drafts, newest first, at most 50."""
        return DraftList(drafts=[_line(draft) for draft in await self._desk.mailbox.drafts(_LISTED)])

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
    ) -> DraftLine:
        """Write a draft. Nothing is sent until send_draft; show it to the user first."""
        outgoing = Outgoing.of(to, subject, body, cc, bcc, is_html=is_html)
        mailbox = self._desk.mailbox
        if reply_to_message_id:
            answer = reply_to(await mailbox.read(reply_to_message_id), mailbox.address, body, is_html=is_html)
            outgoing = replace(
                outgoing, in_reply_to=answer.in_reply_to, references=answer.references, thread_id=answer.thread_id
            )
        message_id = new_message_id(mailbox.address, current_call().call_id, "create_draft")
        mail = compose(await self._desk.with_files(outgoing, attachments), mailbox.address, message_id)
        return _line(await mailbox.create_draft(mail, outgoing.thread_id))

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
    ) -> DraftLine:
        """Write a draft anew: everything in it is replaced, its attachments too. It keeps its id and its thread."""
        outgoing = Outgoing.of(to, subject, body, cc, bcc, is_html=is_html)
        mailbox = self._desk.mailbox
        message_id = new_message_id(mailbox.address, current_call().call_id, "update_draft")
        mail = compose(await self._desk.with_files(outgoing, attachments), mailbox.address, message_id)
        return _line(await mailbox.replace_draft(draft_id, mail))

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def send_draft(self, draft_id: DraftId) -> DraftSent:
        """Send a draft as it is. It can not be taken back."""
        sent = await self._desk.mailbox.send_draft(draft_id)
        return DraftSent(id=sent.id, thread_id=sent.thread_id, already_sent=sent.already, notice=sent.notice)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_draft(self, draft_id: DraftId) -> DraftGone:
        """Delete a draft for good."""
        await self._desk.mailbox.delete_draft(draft_id)
        return DraftGone(draft_id=draft_id)


def _line(draft: Draft) -> DraftLine:
    return DraftLine(
        draft_id=draft.id,
        message_id=draft.message_id,
        to=draft.to[:300],
        subject=draft.subject[:300],
        snippet=draft.snippet[:200],
        date=draft.date.isoformat() if draft.date else None,
    )
