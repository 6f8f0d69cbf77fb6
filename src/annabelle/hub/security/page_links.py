"""Links that sign a browser in once, and the session it gets: a device token in two halves (UX-02).

One half is a cookie that no script can read, the other a key in the storage of the page's origin. A cookie is sent to
every port of a host, so other programs on this machine may see that half; scripts of another page see neither.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from annabelle.core.errors import Unauthorized
from annabelle.core.messages import now
from annabelle.hub.security.identities import CallerIdentity
from annabelle.hub.security.users_file import hash_token

COOKIE: Final = b"annabelle_session"
KEY_HEADER: Final = b"x-annabelle-page"
GOOD_FOR: Final = timedelta(minutes=5)
_COOKIE_CHARS: Final = 22
_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class _OpenLink:
    caller: CallerIdentity
    until: datetime


class PageLinks:
    """The links that were made and not used yet, by hash. They end with the hub."""

    def __init__(self) -> None:
        self._links: dict[str, _OpenLink] = {}
        self.one_at_a_time = asyncio.Lock()
        """Held while a link becomes a session, or it would work twice, and two at once would take the same number."""

    def make(self, caller: CallerIdentity) -> tuple[str, datetime]:
        """A new code for whoever asks, and until when it is good."""
        at = now()
        kept = [(key, one) for key, one in self._links.items() if one.until > at]
        self._links = dict(kept[-_MOST:])
        code = secrets.token_urlsafe(24)
        self._links[hash_token(code.encode())] = _OpenLink(caller, at + GOOD_FOR)
        return code, at + GOOD_FOR

    def find(self, code: str) -> CallerIdentity:
        """Who made the link, which is good until it is spent."""
        found = self._links.get(hash_token(code.encode()))
        if found is None or found.until <= now():
            raise Unauthorized("This link was used before or has expired.", hint="annabelle open makes another.")
        return found.caller

    def spend(self, code: str) -> None:
        self._links.pop(hash_token(code.encode()), None)


def split_secret(secret: str) -> tuple[str, str]:
    """The cookie and the key of a session."""
    return secret[:_COOKIE_CHARS], secret[_COOKIE_CHARS:]


def join_secret(cookies: bytes, key: bytes) -> bytes:
    """The token of a request of the page; empty if one half is missing."""
    for part in cookies.split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == COOKIE and key:
            return value + key
    return b""
