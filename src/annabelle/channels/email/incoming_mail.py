"""Reads a mail as a message of a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as policy
from email.utils import getaddresses
from typing import Final, cast

from annabelle.channels.channel import Attachment, Update
from annabelle.channels.email.reply_text import cut_html_quotes, cut_quotes
from annabelle.channels.email.sender_check import is_vouched_for, read_sender
from annabelle.core.html_text import html_to_text

_MESSAGE_ID: Final = re.compile(r"<[^\s<>\"\x00-\x1f\x7f]{1,190}>")
_ANSWER_MARK: Final = re.compile(r"(?i)(re:\s*)+")
_MASS_MAIL: Final = frozenset({"bulk", "list", "junk"})
_MACHINES: Final = frozenset({"mailer-daemon", "postmaster"})


@dataclass(frozen=True, slots=True)
class MailboxRules:
    """Whose mailbox it is, and which server's word counts about senders."""

    address: str
    authserv_id: str


@dataclass(frozen=True, slots=True)
class MailPosition:
    """Where a mail lies: the number of the folder's life, and of the mail in it."""

    validity: int
    uid: int

    @classmethod
    def parse(cls, text: str) -> MailPosition:
        validity, _, uid = text.partition(":")
        return cls(int(validity), int(uid))

    def __str__(self) -> str:
        return f"{self.validity}:{self.uid}"


def parse_mail_bytes(data: bytes) -> EmailMessage:
    return message_from_bytes(data, policy=policy)


def read_update(data: bytes, position: MailPosition, received_at: datetime, rules: MailboxRules) -> Update | None:
    """None if the sender cannot be read. A sender nobody vouches for is taken for a program, which nobody answers."""
    mail = parse_mail_bytes(data)
    sender = read_sender(mail)
    if not sender:
        return None
    genuine = is_vouched_for(mail, sender, rules.authserv_id)
    return Update(
        external_id=read_message_id(mail) or str(position),
        chat_id=sender,
        sender_id=sender,
        sender_name=sender,
        text=_read_text(mail),
        sent_at=received_at,
        addressed=rules.address in _read_addresses(mail, "To"),
        automatic=not genuine or sender == rules.address or _is_automatic(mail, sender),
        attachments=_list_attachments(mail, position),
    )


def describe_too_large(update: Update, size: int) -> Update:
    """The same for a mail of which only the head was read."""
    return update.model_copy(update={"attachments": (Attachment(id="", name="This mail", size=size),)})


def read_message_id(mail: EmailMessage) -> str:
    found = _MESSAGE_ID.search(str(mail.get("Message-ID", "")))
    return found[0] if found else ""


def list_references(mail: EmailMessage) -> list[str]:
    """The mails of the thread up to this one."""
    return [*_MESSAGE_ID.findall(str(mail.get("References", ""))), read_message_id(mail)][-20:]


def read_subject(mail: EmailMessage) -> str:
    """Without the marks of an answer."""
    subject = " ".join(str(mail.get("Subject", "")).split())
    return subject[found.end() if (found := _ANSWER_MARK.match(subject)) else 0 :][:200]


def list_files(mail: EmailMessage) -> Sequence[EmailMessage]:
    return [part for part in mail.walk() if part.get_filename() and not part.is_multipart()]


def decode_file(part: EmailMessage) -> bytes:
    content = cast("object", part.get_payload(decode=True))
    return content if isinstance(content, bytes) else b""


def _read_text(mail: EmailMessage) -> str:
    """The words of the person. The subject counts where it begins a thread, and alone if it is a command."""
    subject, body = read_subject(mail), _read_body(mail)
    if subject.startswith("/") or not body:
        return subject
    is_answer = bool(mail.get("In-Reply-To"))
    return body if is_answer or body.startswith("/") or not subject else f"{subject}\n\n{body}"


def _read_body(mail: EmailMessage) -> str:
    part = mail.get_body(("plain", "html"))
    if part is None:
        return ""
    text = str(part.get_content())
    if part.get_content_subtype() == "html":
        text = html_to_text(cut_html_quotes(text))
    return cut_quotes(text)


def _read_addresses(mail: EmailMessage, header: str) -> list[str]:
    return [address.lower() for _, address in getaddresses([str(one) for one in mail.get_all(header, [])])]


def _is_automatic(mail: EmailMessage, sender: str) -> bool:
    def read(name: str) -> str:
        return str(mail.get(name, "")).strip().lower()

    return (
        read("Auto-Submitted").partition(";")[0].strip() not in ("", "no")
        or read("Precedence") in _MASS_MAIL
        or "List-Id" in mail
        or read("Return-Path") == "<>"
        or sender.partition("@")[0] in _MACHINES
    )


def _list_attachments(mail: EmailMessage, position: MailPosition) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(
            id=f"{position}:{number}",
            name=str(part.get_filename()),
            kind="image" if part.get_content_maintype() == "image" else "file",
            size=len(decode_file(part)),
        )
        for number, part in enumerate(list_files(mail))
    )
