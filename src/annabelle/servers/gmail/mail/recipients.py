"""Addresses a call names, made sure of before anything is written to them."""

from __future__ import annotations

import re
from email.headerregistry import Address
from email.utils import getaddresses

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.mail.header_text import plain

MAX_RECIPIENTS = 100
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_DOMAIN = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")


def one_line(text: str, field: str) -> str:
    """A value for a header. A line break in it would begin another header, so it is refused, not mended."""
    if _CONTROL.search(text):
        raise InvalidArguments(f"{field} may not have line breaks or control characters in it.", field=field)
    return text.strip()


def parse_recipients(text: str | None, field: str) -> tuple[Address, ...]:
    """`ada@example.com, "Love, Ada" <ada@example.com>`; each is looked at, the first that is none is named."""
    if not text or not text.strip():
        return ()
    found: list[Address] = []
    for name, address in _split(one_line(text, field), field):
        if not name and not address:
            continue
        found.append(checked_address(name, address, field))
    if not found:
        raise _no_address(text, field)
    if len(found) > MAX_RECIPIENTS:
        raise InvalidArguments(f"{field} has {len(found)} addresses; at most {MAX_RECIPIENTS} are taken.", field=field)
    return _distinct(found)


def _split(text: str, field: str) -> list[tuple[str, str]]:
    try:
        return getaddresses([text.replace(";", ",")])
    except (RecursionError, ValueError, IndexError) as error:  # parentheses in parentheses without end
        raise InvalidArguments(f"{field} can not be read as addresses.", field=field) from error


def checked_address(name: str, address: str, field: str) -> Address:
    local, _, domain = address.rpartition("@")
    ascii_domain = _ascii(domain)
    fits = _LOCAL.fullmatch(local) and not local.startswith(".") and not local.endswith(".") and ".." not in local
    if not fits or ascii_domain is None or not _DOMAIN.fullmatch(ascii_domain):
        raise _no_address(address or name, field)
    return Address(display_name=plain(name)[:200], username=local, domain=ascii_domain)


def _no_address(text: str, field: str) -> InvalidArguments:
    return InvalidArguments(
        f"{plain(text)[:100]!r} is not an email address.",
        hint="Write name@example.com, several with commas; quote a name that has a comma in it.",
        field=field,
    )


def without(addresses: tuple[Address, ...], own: str) -> tuple[Address, ...]:
    """Everybody but the person themselves."""
    return tuple(address for address in addresses if address.addr_spec.lower() != own.lower())


def _distinct(addresses: list[Address]) -> tuple[Address, ...]:
    return tuple({address.addr_spec.lower(): address for address in reversed(addresses)}.values())[::-1]


def _ascii(domain: str) -> str | None:
    try:
        return domain.encode("idna").decode("ascii") if not domain.isascii() else domain
    except UnicodeError:
        return None
