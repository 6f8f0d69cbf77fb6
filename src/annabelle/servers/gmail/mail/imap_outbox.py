"""Sending from a plain mailbox: over SMTP, with a copy among the sent mails."""

from __future__ import annotations

import asyncio
import contextlib
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import SMTP, compat32
from typing import TYPE_CHECKING

import anyio

from annabelle.core.connections import MailAccount
from annabelle.core.errors import AnnabelleError, Conflict
from annabelle.servers.gmail.mail import imap_drafts, smtp
from annabelle.servers.gmail.mail.header_text import addresses, message_ids
from annabelle.servers.gmail.mail.imap_connection import ImapConnection
from annabelle.servers.gmail.mail.imap_folders import SENT, Folders
from annabelle.servers.gmail.mail.imap_ids import Place
from annabelle.servers.gmail.mail.imap_messages import validity_of
from annabelle.servers.gmail.mail.imap_moving import with_message_id
from annabelle.servers.gmail.mail.models import Sent
from annabelle.servers.gmail.mail.outgoing import without_bcc
from annabelle.servers.gmail.mail.parsing import raw_header
from annabelle.servers.gmail.mail.recipients import checked_address
from annabelle.servers.gmail.reach import Reach

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail.imap_client import ImapClient

_KEEP_SECONDS = 20.0


class Outbox:
    """Hands mails over, each Message-ID once."""

    def __init__(self, account: MailAccount, connection: ImapConnection, reach: Reach) -> None:
        self._account, self._connection, self._reach = account, connection, reach
        self._turn = asyncio.Lock()

    async def send(self, mail: EmailMessage) -> Sent:
        recipients = [
            address for name in ("To", "Cc", "Bcc") for _, address in addresses(str(mail.get(name, ""))) if address
        ]
        async with self._turn:
            return await self._send(str(mail["Message-ID"]), recipients, without_bcc(mail))

    async def send_draft(self, draft_id: str) -> Sent:
        async with self._turn:
            data = await self._connection.run(lambda client, stop: imap_drafts.draft_bytes(client, draft_id))
            raw = message_from_bytes(data, policy=compat32)
            recipients = _recipients(raw)
            del raw["Bcc"]
            own = next(iter(message_ids(raw_header(raw, "Message-ID"))), "")
            sent = await self._send(own, recipients, raw.as_bytes(policy=SMTP))
            try:
                await self._connection.run(lambda client, stop: imap_drafts.drop_draft(client, draft_id))
            except AnnabelleError:
                return Sent(sent.id, sent.thread_id, sent.already, "It was sent, but the draft is still there.")
            return sent

    async def _send(self, message_id: str, recipients: list[str], data: bytes) -> Sent:
        """One at a time, so that two tries with the same Message-ID send one mail."""
        before = await self._connection.run(lambda client, stop: _in_sent(client, message_id))
        if before is not None:
            return Sent(before.id(), already=True)
        receipt = smtp.Receipt()
        try:
            await smtp.deliver(self._account, list(dict.fromkeys(recipients)), data, receipt, self._reach)
        except asyncio.CancelledError:
            if receipt.taken:  # it is sent all the same, and whoever tries again has to find it
                with anyio.move_on_after(_KEEP_SECONDS, shield=True), contextlib.suppress(AnnabelleError):
                    await self._keep(message_id, data)
            raise
        notice = f"The mail server did not take: {', '.join(receipt.refused[:10])}." if receipt.refused else None
        try:
            kept = await self._keep(message_id, data)
        except AnnabelleError:
            return Sent(None, notice=" ".join(filter(None, ["It was sent, but no copy could be kept.", notice])))
        return Sent(kept.id() if kept is not None else None, notice=notice)

    async def _keep(self, message_id: str, data: bytes) -> Place | None:
        return await self._connection.run(lambda client, stop: _keep_sent(client, message_id, data))


def _recipients(draft: Message) -> list[str]:
    """Whom a draft, which any program may have written, goes to; an address nobody could write to is named."""
    named = [found for name in ("To", "Cc", "Bcc") for found in addresses(raw_header(draft, name)) if "@" in found[1]]
    if not named:
        raise Conflict("The draft names nobody it could go to.", hint="update_draft sets an address.")
    return [checked_address(name, address, "draft_id").addr_spec for name, address in named]


def _in_sent(client: ImapClient, message_id: str) -> Place | None:
    folder = Folders.read(client).special(SENT)
    if folder is None or not message_id:
        return None
    validity = validity_of(client.select_folder(folder.name, readonly=True))
    uids = with_message_id(client, message_id)
    return Place(folder.name, validity, uids[-1]) if uids else None


def _keep_sent(client: ImapClient, message_id: str, data: bytes) -> Place | None:
    """A copy among the sent mails, unless the server has put one there itself."""
    folder = Folders.read(client).ensure(client, SENT)
    if _in_sent(client, message_id) is None:
        client.append(folder.name, data, [b"\\Seen"])
    return _in_sent(client, message_id)
