"""Parses the bytes of a mail into headers and parts. Never fails, whatever the sender wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message as RawMessage
from email.parser import BytesParser
from email.utils import collapse_rfc2231_value
from typing import TYPE_CHECKING, TypeVar, cast

from annabelle.core.errors import NotFound
from annabelle.core.html_text import html_to_text
from annabelle.servers.kit import deferred_module
from annabelle.servers.kit.charset import decode_text
from annabelle.servers.mail_calendar.mail.headers import decode_header_text, read_headers
from annabelle.servers.mail_calendar.mail.mailbox import MailAttachment, MailBody, MailHeaders, MailInvitation

if TYPE_CHECKING:
    from annabelle.servers.mail_calendar.mail import invitation
else:
    invitation = deferred_module("annabelle.servers.mail_calendar.mail.invitation")


T = TypeVar("T")

_ENDINGS = {"text/calendar": ".ics", "message/rfc822": ".eml", "application/ms-tnef": ".dat", "text/html": ".html"}
MAX_TEXT_CHARS = 2_000_000


@dataclass(frozen=True, slots=True)
class MailPart:
    """One part. `data` is None if its content must be fetched."""

    id: str
    content_type: str
    charset: str = "utf-8"
    name: str = ""
    attached: bool = False
    """Whether the mail declares it as an attachment."""
    size: int = 0
    data: bytes | None = None
    children: tuple[MailPart, ...] = ()

    def walk(self) -> Iterator[MailPart]:
        """This part and those inside, except the parts of an attached mail."""
        yield self
        if self.content_type != "message/rfc822":
            for child in self.children:
                yield from child.walk()

    def decode(self) -> str:
        return decode_text(self.data or b"", self.charset).replace("\r\n", "\n")[:MAX_TEXT_CHARS]


def extract_body(root: MailPart) -> MailBody:
    files = tuple(
        MailAttachment(attachment_id=part.id, name=file_name(part), content_type=part.content_type, size=part.size)
        for part in root.walk()
        if is_file(part)
    )
    return MailBody(text=_extract_text(root).strip(), attachments=files, invitation=_find_invitation(root))


def is_file(part: MailPart) -> bool:
    if part.content_type.startswith("multipart/"):
        return False
    if part.attached or part.name or part.content_type in ("message/rfc822", "text/calendar"):
        return True
    return not part.content_type.startswith("text/") and (part.size > 0 or bool(part.data))


def file_name(part: MailPart) -> str:
    return part.name or f"part-{part.id}{_ENDINGS.get(part.content_type, '')}"


def find_attachment(root: MailPart, attachment_id: str) -> MailPart:
    for part in root.walk():
        if part.id == attachment_id and is_file(part):
            return part
    raise NotFound("The mail has no such attachment.", hint="list_attachments shows them.", field="attachment_id")


def _extract_text(part: MailPart) -> str:
    """The text to read: plain rather than HTML if the mail has both."""
    if part.content_type == "message/rfc822" or (is_file(part) and not part.children):
        return ""
    if part.content_type == "multipart/alternative":
        plain = [child for child in part.children if not _has_html(child)]
        texts = (_extract_text(child) for child in [*plain, *reversed(part.children)])
        return next((text for text in texts if text.strip()), "")
    if part.children:
        return "\n\n".join(text for text in (_extract_text(child).strip() for child in part.children) if text)
    if part.content_type == "text/html":
        return html_to_text(part.decode())
    return part.decode() if part.content_type.startswith("text/") else ""


def _has_html(part: MailPart) -> bool:
    return any(one.content_type == "text/html" and not one.attached for one in part.walk())


def _find_invitation(root: MailPart) -> MailInvitation | None:
    for part in root.walk():
        if part.content_type == "text/calendar" and part.data:
            found = invitation.read_invitation(part.data)
            if found is not None:
                return found
    return None


_MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What the library raises on parts that break the rules."""
_MAX_PARTS = 500
_MAX_DEPTH = 30


@dataclass(frozen=True, slots=True)
class ParsedMail:
    headers: MailHeaders
    root: MailPart


def parse_mail(data: bytes) -> ParsedMail:
    try:
        raw = message_from_bytes(data)
    except RecursionError:  # deeply nested parts: read only the headers
        raw = BytesParser().parsebytes(data, headersonly=True)
    return ParsedMail(read_headers(lambda name: raw_header(raw, name)), _PartBuilder().build(raw, "", 0))


def raw_header(raw: RawMessage, name: str) -> str:
    value: object = raw.get(name)
    if value is None:
        return ""
    # A header with raw bytes is an object that hides them.
    return str(value) if isinstance(value, str) else _raw_chunks(value)


def _raw_chunks(value: object) -> str:
    chunks = cast("list[tuple[str, object]]", getattr(value, "_chunks", []))
    return "".join(text for text, _ in chunks) if chunks else str(value)


class _PartBuilder:
    def __init__(self) -> None:
        self._count = 0

    def build(self, raw: RawMessage, place: str, depth: int) -> MailPart:
        self._count += 1
        content_type = raw.get_content_type()
        payload: object = raw.get_payload()
        children: tuple[MailPart, ...] = ()
        data: bytes | None = None
        if isinstance(payload, list) and depth < _MAX_DEPTH:
            inside = cast("list[RawMessage]", payload)
            if content_type == "message/rfc822" and inside:
                data = _read_or(b"", inside[0].as_bytes)
            children = tuple(
                self.build(child, f"{place}.{number}" if place else str(number), depth + 1)
                for number, child in enumerate(inside, start=1)
                if self._count < _MAX_PARTS
            )
        elif not isinstance(payload, list):
            data = _decode_payload(raw)
            if content_type.startswith("multipart/"):
                content_type = "text/plain"  # declared as multipart, but without parts
        return MailPart(
            id=place or "1",
            content_type=content_type,
            charset=_read_or("utf-8", raw.get_content_charset),
            name=_read_file_name(raw),
            attached=_read_or("", raw.get_content_disposition) == "attachment",
            size=len(data or b""),
            data=data,
            children=children,
        )


def _decode_payload(raw: RawMessage) -> bytes:
    try:
        data: object = raw.get_payload(decode=True)
    except (*_MALFORMED, AssertionError):
        payload: object = raw.get_payload()
        return str(payload).encode("utf-8", "surrogateescape")
    return data if isinstance(data, bytes) else b""


def _read_or(default: T, read: Callable[[], T | None]) -> T:
    """What `read` gets out of a part, or the default if the part is malformed or has nothing of it."""
    try:
        return read() or default
    except _MALFORMED:
        return default


def _read_file_name(raw: RawMessage) -> str:
    """File name, by RFC 2231 or in encoded words, which many senders use instead."""
    for header, parameter in (("content-disposition", "filename"), ("content-type", "name")):
        try:
            value: object = raw.get_param(parameter, None, header)
            if value is not None:
                return decode_header_text(collapse_rfc2231_value(cast("str", value)))
        except _MALFORMED:
            continue
    return ""
