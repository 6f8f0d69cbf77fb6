"""Who a mail is from, as far as the receiving server vouches for it (RFC 8601). Anybody can write a From line.

Only the topmost Authentication-Results line counts, and only if the configured server wrote it: below it stands what
the mail brought along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from email.utils import getaddresses
from typing import Final

_COMMENT: Final = re.compile(r"\([^()]*\)")
_QUOTED: Final = re.compile(r'"((?:\\.|[^"\\])*)"')
_RESULT: Final = re.compile(r"([A-Za-z0-9_.-]+)\s*=\s*([A-Za-z0-9_.-]+)")
_PROPERTY: Final = re.compile(r"([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)\s*=\s*([^\s;]+)")
_ADDRESS: Final = re.compile(r"[^@\s\x00-\x1f<>\"]{1,64}@[a-z0-9.-]{1,120}")
_ALIGNED: Final = {"dmarc": ("header.from",), "dkim": ("header.d", "header.i"), "spf": ("smtp.mailfrom",)}
"""For each method, the properties that name the domain it vouches for, the best first."""


def read_sender(mail: Message) -> str:
    """The one address of the one From line, in lower case; empty if there is not exactly one."""
    lines = [str(one) for one in mail.get_all("From", [])]
    addresses = [address for _, address in getaddresses(lines) if address]
    if len(lines) != 1 or len(addresses) != 1:
        return ""
    address = addresses[0].lower()
    return address if _ADDRESS.fullmatch(address) else ""


def is_vouched_for(mail: Message, sender: str, server: str) -> bool:
    """Whether the receiving server says that the mail comes from the domain of the sender."""
    lines = [str(one) for one in mail.get_all("Authentication-Results", [])]
    domain = sender.rpartition("@")[2]
    if not lines or not server or not domain:
        return False
    who, *results = _split_results(lines[0])
    if who.split()[:1] != [server.lower()]:
        return False
    return any(_vouches(result, domain) for result in results)


def _split_results(line: str) -> Iterator[str]:
    """The server's name, then each result, without comments and quotes."""
    text = _QUOTED.sub(lambda found: re.sub(r"[;()\s]", "", found[1]), line)
    while (shorter := _COMMENT.sub(" ", text)) != text:
        text = shorter
    for piece in text.split(";"):
        yield piece.strip().lower()


def _vouches(result: str, domain: str) -> bool:
    found = _RESULT.match(result)
    if found is None or found[2] != "pass" or found[1] not in _ALIGNED:
        return False
    named = [(name, value.rpartition("@")[2]) for name, value in _PROPERTY.findall(result)]
    for property_name in _ALIGNED[found[1]]:
        given = [value for name, value in named if name == property_name]
        if given:
            return all(value == domain for value in given)
    # DMARC is about the From line even where the server does not repeat its domain.
    return found[1] == "dmarc"
