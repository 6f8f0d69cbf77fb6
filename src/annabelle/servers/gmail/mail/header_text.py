"""Headers as people read them, whatever the sender made of the rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.utils import getaddresses, parsedate_to_datetime

from annabelle.servers.gmail.mail.charsets import decode_text
from annabelle.servers.gmail.mail.models import Headers

_MESSAGE_ID = re.compile(r"<[^<>\s]{1,900}>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_MAX_ADDRESSES = 500
MAX_HEADER_CHARS = 20_000


def plain(raw: str) -> str:
    """One line: encoded words decoded, folds undone, control characters gone."""
    text = raw[:MAX_HEADER_CHARS]
    unfolded = re.sub(r"\r?\n[ \t]+", " ", text)
    try:
        pieces = decode_header(unfolded)
    except (HeaderParseError, ValueError, LookupError):
        pieces = [(unfolded, None)]
    decoded = "".join(
        piece if isinstance(piece, str) else decode_text(piece, charset or "utf-8") for piece, charset in pieces
    )
    # Bytes that were in the header as they are come as surrogates.
    whole = decode_text(_raw_bytes(decoded), "utf-8")
    return " ".join(_CONTROL.sub("", whole.replace("\r", " ").replace("\n", " ").replace("\t", " ")).split())


def addresses(raw: str) -> list[tuple[str, str]]:
    """Names and addresses of an address header. Split before decoding, so that no name can smuggle an address in; an
    address itself is never encoded, so what looks so stays as it is."""
    try:
        pairs = getaddresses([raw[:MAX_HEADER_CHARS]])
    except (ValueError, IndexError, TypeError, RecursionError):
        return []
    return [(plain(name), _bare(address)) for name, address in pairs[:_MAX_ADDRESSES] if address or name]


def address_line(raw: str) -> str:
    return ", ".join(one_address(name, address) for name, address in addresses(raw))


def one_address(name: str, address: str) -> str:
    if not name or name == address:
        return address
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    shown = f'"{escaped}"' if re.search(r'[,;:<>@"()\\\[\]]', name) else name
    return f"{shown} <{address}>" if address else shown


def _raw_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _bare(address: str) -> str:
    """Letters that are not ASCII stay what they are: with a question mark for each it would be somebody's address."""
    return _raw_bytes("".join(_CONTROL.sub("", address).split())).decode("utf-8", "replace")


def message_ids(raw: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_MESSAGE_ID.findall(raw[:MAX_HEADER_CHARS])))


def moment(raw: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(raw)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def read_headers(get: Callable[[str], str]) -> Headers:
    """`get` gives a header as it stands in the mail, or an empty string."""
    own = message_ids(get("Message-ID"))
    references = (*message_ids(get("References")), *message_ids(get("In-Reply-To")))
    return Headers(
        sender=address_line(get("From")),
        to=address_line(get("To")),
        cc=address_line(get("Cc")),
        bcc=address_line(get("Bcc")),
        reply_to=address_line(get("Reply-To")),
        subject=plain(get("Subject")),
        date=moment(get("Date")),
        message_id=own[0] if own else "",
        references=tuple(dict.fromkeys(references)),
    )
