"""Composes new mails and replies, to send or keep as drafts."""

from __future__ import annotations

import hashlib
import mimetypes
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from annabelle.core.errors import Conflict, InvalidArguments
from annabelle.core.html_text import html_to_text
from annabelle.servers.mail_calendar.mail.headers import (
    check_address,
    exclude_address,
    parse_addresses,
    parse_recipients,
    require_one_line,
)
from annabelle.servers.mail_calendar.mail.mailbox import MailHeaders, MailMessage

MAX_REFERENCES = 30
_POLICY = SMTP.clone(cte_type="7bit")
"""7-bit content, which every mail server accepts."""


@dataclass(frozen=True, slots=True)
class FileToSend:
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class OutgoingMail:
    to: tuple[Address, ...]
    subject: str
    body: str
    cc: tuple[Address, ...] = ()
    bcc: tuple[Address, ...] = ()
    is_html: bool = False
    files: tuple[FileToSend, ...] = ()
    in_reply_to: str = ""
    references: tuple[str, ...] = ()
    thread_id: str | None = None

    @classmethod
    def from_arguments(
        cls, to: str, subject: str, body: str, cc: str | None, bcc: str | None, *, is_html: bool
    ) -> OutgoingMail:
        """Parse the arguments of a tool. The error names invalid addresses and headers."""
        return cls(
            to=parse_recipients(to, "to"),
            subject=require_one_line(subject, "subject"),
            body=body,
            cc=parse_recipients(cc, "cc"),
            bcc=parse_recipients(bcc, "bcc"),
            is_html=is_html,
        )


def compose_mail(outgoing: OutgoingMail, own: str, message_id: str) -> EmailMessage:
    """Compose a mail. It contains Bcc, which must be removed before sending."""
    mail = EmailMessage(policy=_POLICY)
    try:
        mail["From"] = own
        for name, addresses in (("To", outgoing.to), ("Cc", outgoing.cc), ("Bcc", outgoing.bcc)):
            if addresses:
                mail[name] = addresses
        mail["Subject"] = outgoing.subject
        mail["Date"] = format_datetime(datetime.now(UTC))
        mail["Message-ID"] = message_id
        if outgoing.in_reply_to:
            mail["In-Reply-To"] = outgoing.in_reply_to
            mail["References"] = " ".join(_trim_references(outgoing.references))
        text = outgoing.body.encode("utf-8", "replace").decode()
        mail.set_content(html_to_text(text) if outgoing.is_html else text)
        if outgoing.is_html:
            mail.add_alternative(text, subtype="html")
        for file in outgoing.files:
            _attach(mail, file)
    except (MessageError, ValueError, IndexError) as error:
        raise InvalidArguments("The mail can not be written with these values.", field="subject") from error
    return mail


def new_message_id(own: str, call_id: str | None, purpose: str) -> str:
    """Same Message-ID for the same call, so that a repeat is recognised. New for a call without an id."""
    key = hashlib.sha256(f"{purpose}:{call_id}".encode()).hexdigest()[:32] if call_id else secrets.token_hex(16)
    domain = own.rpartition("@")[2] or "localhost"
    return f"<{key}@{domain if domain.isascii() else 'localhost'}>"


def keep_thread(mail: EmailMessage, former: MailHeaders) -> None:
    if former.references and mail["In-Reply-To"] is None:
        mail["In-Reply-To"] = former.references[-1]
        mail["References"] = " ".join(_trim_references(former.references))


def _attach(mail: EmailMessage, file: FileToSend) -> None:
    guessed, encoding = mimetypes.guess_type(file.name)
    main, _, sub = (guessed if guessed and not encoding else "application/octet-stream").partition("/")
    if main in ("multipart", "message"):
        main, sub = "application", "octet-stream"
    mail.add_attachment(file.data, maintype=main, subtype=sub, filename=file.name)


def _trim_references(references: tuple[str, ...]) -> tuple[str, ...]:
    """Shorten the References of a long thread to the first and the latest ids."""
    return references if len(references) <= MAX_REFERENCES else (references[0], *references[1 - MAX_REFERENCES :])


_RE = re.compile(r"\s*(re|aw|sv|antw|odp|rif|res)(\[\d+\])?\s*[:：]", re.IGNORECASE)


def compose_reply(message: MailMessage, own: str, body: str, *, is_html: bool, everyone: bool = False) -> OutgoingMail:
    """Compose the reply to a mail, never addressed to the user."""
    headers = message.summary.headers
    to = exclude_address(_valid_addresses(headers.reply_to or headers.sender), own)
    if not to:  # a reply to one's own mail goes to its recipients
        to = exclude_address(_valid_addresses(headers.to), own)
    if not to:
        raise Conflict("This mail names nobody an answer could go to.", hint="Use send_email with an address.")
    cc = exclude_address(_valid_addresses(headers.to) + _valid_addresses(headers.cc), own) if everyone else ()
    taken = {address.addr_spec.lower() for address in to}
    return OutgoingMail(
        to=to,
        subject=headers.subject if _RE.match(headers.subject) else f"Re: {headers.subject}".strip(),
        body=body,
        cc=tuple(address for address in cc if address.addr_spec.lower() not in taken),
        is_html=is_html,
        in_reply_to=headers.message_id,
        references=(*headers.references, headers.message_id) if headers.message_id else (),
        thread_id=message.summary.thread_id,
    )


def _valid_addresses(line: str) -> tuple[Address, ...]:
    found: dict[str, Address] = {}
    for name, address in parse_addresses(line):
        try:
            one = check_address(name, address, "message_id")
        except InvalidArguments:
            continue
        found.setdefault(one.addr_spec.lower(), one)
    return tuple(found.values())
