"""Mail headers and addresses: decoded for reading, and checked before sending."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.headerregistry import Address
from email.utils import getaddresses, parsedate_to_datetime

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit.charset import decode_text
from annabelle.servers.mail_calendar.mail.mailbox import MailHeaders

_MESSAGE_ID = re.compile(r"<[^<>\s]{1,900}>")
_UNSAFE_IN_HEADERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_MAX_ADDRESSES = 500
MAX_HEADER_CHARS = 20_000


def decode_header_text(raw: str) -> str:
    """Decode a header to one line, without control characters."""
    text = raw[:MAX_HEADER_CHARS]
    unfolded = re.sub(r"\r?\n[ \t]+", " ", text)
    try:
        pieces = decode_header(unfolded)
    except (HeaderParseError, ValueError, LookupError):
        pieces = [(unfolded, None)]
    decoded = "".join(
        piece if isinstance(piece, str) else decode_text(piece, charset or "utf-8") for piece, charset in pieces
    )
    # Raw bytes in the header are decoded as surrogates.
    whole = decode_text(_raw_bytes(decoded), "utf-8")
    return " ".join(_UNSAFE_IN_HEADERS.sub("", whole.replace("\r", " ").replace("\n", " ").replace("\t", " ")).split())


def parse_addresses(raw: str) -> list[tuple[str, str]]:
    """Names and addresses of a header. Split before decoding, so that no name can smuggle in an address."""
    try:
        pairs = getaddresses([raw[:MAX_HEADER_CHARS]])
    except (ValueError, IndexError, TypeError, RecursionError):
        return []
    return [
        (decode_header_text(name), _clean_address(address))
        for name, address in pairs[:_MAX_ADDRESSES]
        if address or name
    ]


def format_addresses(raw: str) -> str:
    return ", ".join(format_address(name, address) for name, address in parse_addresses(raw))


def format_address(name: str, address: str) -> str:
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


def _clean_address(address: str) -> str:
    """Keep non-ASCII characters: replaced, they could form another person's address."""
    return _raw_bytes("".join(_UNSAFE_IN_HEADERS.sub("", address).split())).decode("utf-8", "replace")


def find_message_ids(raw: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_MESSAGE_ID.findall(raw[:MAX_HEADER_CHARS])))


def parse_date(raw: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(raw)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def read_headers(get: Callable[[str], str]) -> MailHeaders:
    """`get` returns a raw header, or an empty string."""
    own = find_message_ids(get("Message-ID"))
    references = (*find_message_ids(get("References")), *find_message_ids(get("In-Reply-To")))
    return MailHeaders(
        sender=format_addresses(get("From")),
        to=format_addresses(get("To")),
        cc=format_addresses(get("Cc")),
        reply_to=format_addresses(get("Reply-To")),
        subject=decode_header_text(get("Subject")),
        date=parse_date(get("Date")),
        message_id=own[0] if own else "",
        references=tuple(dict.fromkeys(references)),
    )


MAX_RECIPIENTS = 100
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_DOMAIN = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")


def require_one_line(text: str, field: str) -> str:
    """Check a header value. A line break would start another header."""
    if _CONTROL.search(text):
        raise InvalidArguments(f"{field} may not have line breaks or control characters in it.", field=field)
    return text.strip()


def parse_recipients(text: str | None, field: str) -> tuple[Address, ...]:
    """Parse `ada@example.com, "Love, Ada" <ada@example.com>`. The error names the first invalid address."""
    if not text or not text.strip():
        return ()
    pairs = _split(require_one_line(text, field), field)
    found = [check_address(name, address, field) for name, address in pairs if name or address]
    if not found:
        raise _address_error(text, field)
    if len(found) > MAX_RECIPIENTS:
        raise InvalidArguments(f"{field} has {len(found)} addresses; at most {MAX_RECIPIENTS} are taken.", field=field)
    return _remove_repeats(found)


def _split(text: str, field: str) -> list[tuple[str, str]]:
    try:
        return getaddresses([text.replace(";", ",")])
    except (RecursionError, ValueError, IndexError) as error:  # deeply nested parentheses
        raise InvalidArguments(f"{field} can not be read as addresses.", field=field) from error


def check_address(name: str, address: str, field: str) -> Address:
    local, _, domain = address.rpartition("@")
    ascii_domain = _to_ascii_domain(domain)
    fits = _LOCAL.fullmatch(local) and not local.startswith(".") and not local.endswith(".") and ".." not in local
    if not fits or ascii_domain is None or not _DOMAIN.fullmatch(ascii_domain):
        raise _address_error(address or name, field)
    return Address(display_name=decode_header_text(name)[:200], username=local, domain=ascii_domain)


def _address_error(text: str, field: str) -> InvalidArguments:
    return InvalidArguments(
        f"{decode_header_text(text)[:100]!r} is not an email address.",
        hint="Write name@example.com, several with commas; quote a name that has a comma in it.",
        field=field,
    )


def exclude_address(addresses: tuple[Address, ...], own: str) -> tuple[Address, ...]:
    return tuple(address for address in addresses if address.addr_spec.lower() != own.lower())


def _remove_repeats(addresses: list[Address]) -> tuple[Address, ...]:
    return tuple({address.addr_spec.lower(): address for address in reversed(addresses)}.values())[::-1]


def _to_ascii_domain(domain: str) -> str | None:
    try:
        return domain.encode("idna").decode("ascii") if not domain.isascii() else domain
    except UnicodeError:
        return None
