"""A mail that is going to be sent or kept as a draft."""

from __future__ import annotations

import hashlib
import mimetypes
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.mail.html_text import html_to_text
from annabelle.servers.gmail.mail.models import Headers
from annabelle.servers.gmail.mail.recipients import one_line, parse_recipients

MAX_REFERENCES = 30
_POLICY = SMTP.clone(cte_type="7bit")
"""Every mail server takes it, also those that know nothing of other bytes."""


@dataclass(frozen=True, slots=True)
class FileToSend:
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Everything the person decided about a mail."""

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
    def of(cls, to: str, subject: str, body: str, cc: str | None, bcc: str | None, *, is_html: bool) -> Outgoing:
        """As the parameters of a tool say it. Wrong addresses and line breaks in headers are named."""
        return cls(
            to=parse_recipients(to, "to"),
            subject=one_line(subject, "subject"),
            body=body,
            cc=parse_recipients(cc, "cc"),
            bcc=parse_recipients(bcc, "bcc"),
            is_html=is_html,
        )


def compose(outgoing: Outgoing, own: str, message_id: str) -> EmailMessage:
    """The mail as it goes over the wire. Bcc is in it; whoever sends it takes it out."""
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
            mail["References"] = " ".join(_trimmed(outgoing.references))
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
    """The same for the same call, so that a repeat is recognised; a new one for a call without an id."""
    key = hashlib.sha256(f"{purpose}:{call_id}".encode()).hexdigest()[:32] if call_id else secrets.token_hex(16)
    domain = own.rpartition("@")[2] or "localhost"
    return f"<{key}@{domain if domain.isascii() else 'localhost'}>"


def keep_thread(mail: EmailMessage, former: Headers) -> None:
    """Let a mail that is written anew stay in the thread it was in."""
    if former.references and mail["In-Reply-To"] is None:
        mail["In-Reply-To"] = former.references[-1]
        mail["References"] = " ".join(_trimmed(former.references))


def without_bcc(mail: EmailMessage) -> bytes:
    """What the others may see."""
    kept = mail["Bcc"]
    del mail["Bcc"]
    try:
        return mail.as_bytes()
    finally:
        if kept is not None:
            mail["Bcc"] = kept


def _attach(mail: EmailMessage, file: FileToSend) -> None:
    guessed, encoding = mimetypes.guess_type(file.name)
    main, _, sub = (guessed if guessed and not encoding else "application/octet-stream").partition("/")
    if main in ("multipart", "message"):
        main, sub = "application", "octet-stream"
    mail.add_attachment(file.data, maintype=main, subtype=sub, filename=file.name)


def _trimmed(references: tuple[str, ...]) -> tuple[str, ...]:
    """The beginning of the thread and the latest of it, as the rules allow when it got long."""
    return references if len(references) <= MAX_REFERENCES else (references[0], *references[1 - MAX_REFERENCES :])
