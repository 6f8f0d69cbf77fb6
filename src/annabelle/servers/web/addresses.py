"""Which addresses are opened: http and https, and the empty page; and which are of the same site."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from annabelle.core.errors import InvalidArguments

BLANK = "about:blank"
_BARE = re.compile(r"[\w.-]+(?::\d{1,5})?(?:[/?#].*)?", re.DOTALL)
_UNFIT = re.compile(r"[\x00-\x20\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def readable(url: str) -> str:
    """An address as somebody wrote it, checked; one without a scheme is taken for https."""
    address = url.strip()
    if _UNFIT.search(address):
        raise InvalidArguments("The address contains spaces or control characters.", field="url")
    if address == BLANK:
        return address
    if _BARE.fullmatch(address):
        address = f"https://{address}"
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidArguments("This is not a valid address.", hint="It looks like https://….", field="url") from error
    if parts.scheme not in ("http", "https"):
        raise InvalidArguments("Only http and https addresses are opened.", field="url")
    if not host:
        raise InvalidArguments("The address names no site.", hint="It looks like https://….", field="url")
    if "@" in parts.netloc:
        raise InvalidArguments("Addresses with a name or password in them are not opened.", field="url")
    return address


def same_site(page: str, site: str) -> bool:
    """Whether a page is of a site as a vault item names it: the same host, apart from `www.`, and the same port. A
    subdomain may be somebody else's. What is kept for https is not given away over http."""
    try:
        here, there = urlsplit(page), urlsplit(site if "://" in site else f"//{site}")
        ports = here.port, there.port
    except ValueError:
        return False
    if here.scheme not in ("http", "https") or (there.scheme == "https" and here.scheme == "http"):
        return False
    host = _host(here.hostname)
    usual = {"http": 80, "https": 443}
    same_port = (ports[0] or usual[here.scheme]) == (ports[1] or usual[here.scheme])
    return bool(host) and host == _host(there.hostname) and same_port


def _host(name: str | None) -> str:
    try:
        ascii_name = (name or "").encode("idna").decode()  # as browsers spell it
    except UnicodeError:
        return ""
    return ascii_name.lower().rstrip(".").removeprefix("www.")
