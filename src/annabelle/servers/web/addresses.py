"""Which addresses are opened: http and https, and the empty page."""

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
