"""E-mail as a channel: every person is a chat, and every answer stands in the thread of what it answers.

Nothing about threads is kept here: the head of the mail that is answered is looked up in the mailbox.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
import threading
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from annabelle.channels.channel import MALFORMED, Attachment, ChannelAccount, NotDelivered, OutgoingPart, Poll, Update
from annabelle.channels.email.incoming_mail import (
    MailboxRules,
    MailPosition,
    decode_file,
    describe_too_large,
    list_files,
    list_references,
    parse_mail_bytes,
    read_message_id,
    read_subject,
    read_update,
)
from annabelle.channels.email.mail_server import MailServers, ReceivedMail
from annabelle.channels.email.sender_check import is_vouched_for, read_sender
from annabelle.channels.markdown import render_plain, render_web_html, write_buttons
from annabelle.core.connections import MailAccount, MailServerAddress
from annabelle.core.ids import new_id
from annabelle.core.messages import EMAIL
from annabelle.core.settings import Settings

_POLL_SECONDS: Final = 50.0
_MOST_BYTES: Final = 30 * 1024 * 1024
_NEW_SUBJECT: Final = "A message from Annabelle"
_log = logging.getLogger(__name__)


class EmailChannel:
    name = EMAIL
    longest = 100_000
    can_remove = False
    editable = False
    repeat_seconds = 0.0

    def __init__(self, servers: MailServers, rules: MailboxRules) -> None:
        self._servers, self._rules = servers, rules
        self._end: MailPosition | None = None

    async def connect(self) -> ChannelAccount:
        if not self._rules.authserv_id:
            raise NotDelivered(
                "EMAIL_CHANNEL_AUTHSERV_ID is not set, so nobody can be told from somebody who writes their name, and"
                " no mail is answered. docs/channels.md says what to set."
            )
        self._end = await asyncio.to_thread(self._servers.find_end)
        address = self._rules.address
        return ChannelAccount(address, address, f"mailto:{address}?subject={{code}}")

    async def poll(self, cursor: str | None) -> Poll:
        # What lay in the mailbox before Annabelle came was not written to her.
        after = self._end if cursor is None else MailPosition.parse(cursor)
        if after is None:
            raise NotDelivered("The mailbox has not been opened.", retry_after=1.0)
        stop = threading.Event()
        try:
            found, reached = await asyncio.to_thread(
                self._servers.wait_for_mails, after, _POLL_SECONDS, stop, _MOST_BYTES
            )
        finally:
            stop.set()
        updates = await asyncio.to_thread(lambda: [update for mail in found if (update := self._read(mail))])
        return Poll(updates, str(reached))

    async def send(self, chat_id: str, part: OutgoingPart) -> str:
        mail = await asyncio.to_thread(self._write, chat_id, part)
        await asyncio.to_thread(self._servers.send, mail, chat_id)
        return str(mail["Message-ID"])

    async def edit(self, chat_id: str, sent_id: str, part: OutgoingPart) -> None:
        """A mail that was sent cannot be changed."""

    async def remove(self, chat_id: str, sent_ids: Sequence[str]) -> None:
        """Nor taken back."""

    def find_message_id(self, external_id: str) -> str | None:
        return None

    async def show_typing(self, chat_id: str) -> None:
        """There is no sign for it."""

    async def acknowledge(self, pressed: str, text: str = "") -> None:
        """There are no buttons."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        where, _, number = attachment.id.rpartition(":")
        mail = await asyncio.to_thread(self._servers.load, MailPosition.parse(where), _MOST_BYTES)
        if mail is None:
            raise NotDelivered("The mail with this file is gone.")

        def save() -> None:
            content = decode_file(list_files(parse_mail_bytes(mail.data))[int(number)])
            if len(content) > most_bytes:
                raise NotDelivered("The file is too large.")
            target.write_bytes(content)

        await asyncio.to_thread(save)

    async def close(self) -> None:
        """Every connection was closed after its use."""

    def _read(self, mail: ReceivedMail) -> Update | None:
        try:
            update = read_update(mail.data, mail.position, mail.received_at, self._rules)
        except MALFORMED as error:
            _log.warning("A mail cannot be read: %s", type(error).__name__)
            return None
        return update if update is None or mail.whole else describe_too_large(update, mail.size)

    def _write(self, recipient: str, part: OutgoingPart) -> EmailMessage:
        text, mail = write_buttons(part), EmailMessage()
        mail["From"] = f"Annabelle <{self._rules.address}>"
        mail["To"] = recipient
        mail["Date"] = formatdate()
        mail["Message-ID"] = f"<{part.key or new_id('mail')}@{self._rules.address.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-replied"
        self._continue_thread(mail, recipient, part.reply_to)
        mail.set_content(render_plain(text))
        mail.add_alternative(f"<!DOCTYPE html>\n<html><body>{render_web_html(text)}</body></html>", subtype="html")
        if part.file is not None:
            kind = mimetypes.guess_type(part.file.name)[0] or "application/octet-stream"
            main, _, sub = kind.partition("/")
            mail.add_attachment(part.file.read_bytes(), maintype=main, subtype=sub, filename=part.file.name)
        return mail

    def _continue_thread(self, mail: EmailMessage, recipient: str, answered: str | None) -> None:
        """Stand below the mail that is answered; what was not asked for, below the person's last mail."""
        message_id = answered if answered is not None and answered.startswith("<") else None
        try:
            data = self._servers.find_head(message_id, recipient)
            head = parse_mail_bytes(data or b"")
            genuine = read_sender(head) == recipient and is_vouched_for(head, recipient, self._rules.authserv_id)
            if genuine and (found := read_message_id(head)):
                mail["Subject"] = f"Re: {read_subject(head) or _NEW_SUBJECT}"
                mail["In-Reply-To"], mail["References"] = found, " ".join(list_references(head))
                return
        except (*MALFORMED, NotDelivered) as error:
            _log.info("The thread of an answer cannot be found: %s", type(error).__name__)
        mail["Subject"] = _NEW_SUBJECT
        if message_id is not None:
            mail["In-Reply-To"] = mail["References"] = message_id


def open_mailbox(settings: Settings) -> EmailChannel:
    """The mailbox that the settings name."""
    address = settings.email_channel_address.strip().lower()
    account = MailAccount(
        address=address,
        username=settings.email_channel_user or address,
        password=settings.email_channel_password or SecretStr(""),
        imap=MailServerAddress(
            host=settings.email_channel_imap_host,
            port=settings.email_channel_imap_port,
            security=settings.email_channel_imap_security,
        ),
        smtp=MailServerAddress(
            host=settings.email_channel_smtp_host,
            port=settings.email_channel_smtp_port,
            security=settings.email_channel_smtp_security,
        ),
    )
    servers = MailServers(account, settings.mail_timeout_seconds, settings.mail_ca_file.strip())
    return EmailChannel(servers, MailboxRules(address, settings.email_channel_authserv_id.strip().lower()))
