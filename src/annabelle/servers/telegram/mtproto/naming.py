"""Which chat a name means: an id, @username, a link to one, +phone, or "me"."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from annabelle.servers.telegram.mtproto.shapes import Client, Entity
from annabelle.servers.telegram.mtproto.trouble import explained, not_found

T = TypeVar("T")

_ID = re.compile(r"-?[0-9]{1,20}")
_PHONE = re.compile(r"\+[0-9\s().-]{5,30}")
_USERNAME = re.compile(r"(?:@|(?:https?://)?(?:t|telegram)\.me/)?([A-Za-z][A-Za-z0-9_]{2,31})/?")
_LARGEST_ID = 2**53
_KNOWN_CHATS = 500
_NEWEST_CHATS = 50


class Names:
    """Finds what a chat is called. An id means nothing to Telegram until the account has seen it, so the chats are
    looked through when one is not known."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._looked_through = False

    async def entity(self, chat: str) -> Entity:
        """All that Telegram tells of it."""
        return await self._find(chat, self._client.get_entity)

    async def peer(self, chat: str) -> object:
        """As much as a request needs, mostly without asking Telegram."""
        return await self._find(chat, self._client.get_input_entity)

    async def _find(self, chat: str, ask: Callable[[object], Awaitable[T]]) -> T:
        what = f"The chat {chat[:60]!r}"
        name = _parsed(chat)
        if name is None:
            raise not_found(what)
        with explained(what):
            try:
                return await ask(name)
            except (ValueError, TypeError) as error:  # what the library says when it can not resolve a name
                if not isinstance(name, int):
                    raise not_found(what) from error
            # A chat that is new since the last look is among the newest.
            await self._client.get_dialogs(limit=_NEWEST_CHATS if self._looked_through else _KNOWN_CHATS)
            self._looked_through = True
            try:
                return await ask(name)
            except (ValueError, TypeError) as error:
                raise not_found(what) from error


def _parsed(chat: str) -> int | str | None:
    name = chat.strip()
    if name.lower() in ("me", "self"):
        return "me"
    if _ID.fullmatch(name):
        number = int(name)
        return number if 0 < abs(number) < _LARGEST_ID else None
    if _PHONE.fullmatch(name):
        return "+" + "".join(char for char in name if char.isdecimal())
    found = _USERNAME.fullmatch(name)
    return f"@{found[1]}" if found else None
