"""The bytes of a mail into its parts and headers. Nothing a sender writes makes it fail."""

from __future__ import annotations

from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message as RawMessage
from email.parser import BytesParser
from email.utils import collapse_rfc2231_value
from typing import cast

from annabelle.servers.gmail.mail.header_text import plain, read_headers
from annabelle.servers.gmail.mail.models import Headers
from annabelle.servers.gmail.mail.parts import Part

_MAX_PARTS = 500
_MAX_DEPTH = 30


@dataclass(frozen=True, slots=True)
class ParsedMail:
    headers: Headers
    root: Part


def parse_mail(data: bytes) -> ParsedMail:
    """Its headers and parts, as far as they can be read."""
    try:
        raw = message_from_bytes(data)
    except RecursionError:  # parts in parts without end: the headers are all there is to read
        raw = BytesParser().parsebytes(data, headersonly=True)
    return ParsedMail(read_headers(lambda name: raw_header(raw, name)), _Builder().build(raw, "", 0))


def raw_header(raw: RawMessage, name: str) -> str:
    value: object = raw.get(name)
    if value is None:
        return ""
    # A header with bytes in it comes as an object that hides them.
    return str(value) if isinstance(value, str) else _unhide(value)


def _unhide(value: object) -> str:
    chunks = cast("list[tuple[str, object]]", getattr(value, "_chunks", []))
    return "".join(text for text, _ in chunks) if chunks else str(value)


class _Builder:
    """Counts parts, so that a mail made of a million of them stays small."""

    def __init__(self) -> None:
        self._count = 0

    def build(self, raw: RawMessage, place: str, depth: int) -> Part:
        self._count += 1
        content_type = raw.get_content_type()
        payload: object = raw.get_payload()
        children: tuple[Part, ...] = ()
        data: bytes | None = None
        if isinstance(payload, list) and depth < _MAX_DEPTH:
            inside = cast("list[RawMessage]", payload)
            if content_type == "message/rfc822" and inside:
                data = _bytes_of(inside[0])
            children = tuple(
                self.build(child, f"{place}.{number}" if place else str(number), depth + 1)
                for number, child in enumerate(inside, start=1)
                if self._count < _MAX_PARTS
            )
        elif not isinstance(payload, list):
            data = _decoded(raw)
            if content_type.startswith("multipart/"):
                content_type = "text/plain"  # says that it has parts, and has none
        return Part(
            id=place or "1",
            content_type=content_type,
            charset=_charset(raw),
            name=_name(raw),
            attached=_disposition(raw) == "attachment",
            size=len(data or b""),
            data=data,
            children=children,
        )


def _decoded(raw: RawMessage) -> bytes:
    try:
        data: object = raw.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError, UnicodeError):
        payload: object = raw.get_payload()
        return str(payload).encode("utf-8", "surrogateescape")
    return data if isinstance(data, bytes) else b""


def _bytes_of(raw: RawMessage) -> bytes:
    try:
        return raw.as_bytes()
    except (ValueError, LookupError, UnicodeError, TypeError, AttributeError, RecursionError):
        return b""


def _charset(raw: RawMessage) -> str:
    try:
        return raw.get_content_charset() or "utf-8"
    except (ValueError, LookupError, UnicodeError, TypeError):
        return "utf-8"


def _disposition(raw: RawMessage) -> str:
    try:
        return raw.get_content_disposition() or ""
    except (ValueError, TypeError, AttributeError):
        return ""


def _name(raw: RawMessage) -> str:
    """The file's name by either rule: RFC 2231, or encoded words, which many senders use instead."""
    for header, parameter in (("content-disposition", "filename"), ("content-type", "name")):
        try:
            value: object = raw.get_param(parameter, None, header)
            if value is not None:
                return plain(collapse_rfc2231_value(cast("str", value)))
        except (ValueError, LookupError, UnicodeError, TypeError):
            continue
    return ""
