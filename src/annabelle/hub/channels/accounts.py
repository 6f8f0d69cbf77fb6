"""Whose account in a channel is whose, and pairing codes to join. An account nobody paired is nobody (CHN-02, I-06)."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from annabelle.channels.channel import Update
from annabelle.core.clock import Clock
from annabelle.core.errors import NotFound
from annabelle.core.ports import AuditTrail
from annabelle.hub.security.identities import HomeUsers
from annabelle.hub.security.users_file import hash_token
from annabelle.store import channels
from annabelle.store.channels import LinkedAccount
from annabelle.store.database import Database

_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without signs that look alike."""
_CODE_CHARS: Final = 8
_VALID: Final = timedelta(minutes=10)
_MOST_WRONG: Final = 5
_LINES_WITH_CODE: Final = 5
_MOST_WATCHED: Final = 1000
_BEFORE_CODE: Final = frozenset({"/pair", "/start"})


@dataclass(frozen=True, slots=True)
class PairingCode:
    """Pairs one account with a user, once."""

    code: str
    channel: str
    user_id: str
    expires_at: datetime


class ChannelAccounts:
    def __init__(self, database: Database, clock: Clock, audit: AuditTrail, *, users: HomeUsers) -> None:
        self._database, self._clock, self._audit, self._users = database, clock, audit, users
        self._codes: dict[str, PairingCode] = {}
        self._wrong: defaultdict[tuple[str, str], deque[datetime]] = defaultdict(deque)
        self.ignored: Counter[str] = Counter()
        """Messages per channel that nobody read: of strangers, and of programs."""

    def make_code(self, channel: str, user_id: str) -> PairingCode:
        """A code for one account of this user. It replaces an earlier one."""
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARS))
        made = PairingCode(code, channel, user_id, self._clock.now() + _VALID)
        self._codes = {key: one for key, one in self._codes.items() if (one.channel, one.user_id) != (channel, user_id)}
        self._codes[hash_token(code.encode())] = made
        return made

    async def find(self, channel: str, account_id: str) -> LinkedAccount | None:
        """Whose account this is; None if it is not paired, or belongs to a person who was let out of the home."""
        found = await self._database.read(lambda conn: channels.find_account(conn, channel, account_id))
        return found if found is not None and self._users.is_known(found.user_id) else None

    async def may_enter(self, channel: str, account_id: str) -> bool:
        """Whether to follow an invitation of this account: it is paired, or a pairing code waits for its first use."""
        return self._expects_code(channel) or await self.find(channel, account_id) is not None

    async def find_people(self, channel: str) -> Sequence[str] | None:
        """The accounts that may speak there; None while a pairing code waits, since that may come from anybody."""
        if self._expects_code(channel):
            return None
        paired = [one for one in await self.list() if one.channel == channel]
        return [one.account_id for one in paired if self._users.is_known(one.user_id)]

    async def list(self) -> list[LinkedAccount]:
        return await self._database.read(channels.list_accounts)

    async def pair(self, channel: str, update: Update) -> LinkedAccount | None:
        """Link the sender of a pairing code. None for everything else, also for a guess too many."""
        given = {hash_token(code.encode()) for code in _read_codes(update.text)}
        if not given or not self._may_guess(channel, update.sender_id):
            return None
        key, found = next(((key, self._codes[key]) for key in given if key in self._codes), ("", None))
        if found is None or found.channel != channel or found.expires_at < self._clock.now():
            self._wrong[channel, update.sender_id].append(self._clock.now())
            return None
        del self._codes[key]
        return await self.link(channel, update.sender_id, found.user_id, update.sender_name, update.chat_id)

    async def link(
        self, channel: str, account_id: str, user_id: str, name: str = "", chat_id: str | None = None
    ) -> LinkedAccount:
        account = LinkedAccount(channel, account_id, user_id, name, chat_id, self._clock.now())
        await self._database.write(lambda conn: channels.link_account(conn, account))
        self._note("paired", account)
        return account

    async def unlink(self, channel: str, account_id: str) -> LinkedAccount:
        def take_back(conn: Connection) -> LinkedAccount | None:
            found = channels.find_account(conn, channel, account_id)
            channels.unlink_account(conn, channel, account_id)
            return found

        found = await self._database.write(take_back)
        if found is None:
            raise NotFound(f"No account {account_id} of {channel} is paired.", hint="annabelle channels lists them.")
        self._note("unpaired", found)
        return found

    def _expects_code(self, channel: str) -> bool:
        return any(one.channel == channel and one.expires_at >= self._clock.now() for one in self._codes.values())

    def _may_guess(self, channel: str, account_id: str) -> bool:
        if len(self._wrong) > _MOST_WATCHED:
            self._wrong.clear()
        guesses = self._wrong[channel, account_id]
        while guesses and guesses[0] < self._clock.now() - _VALID:
            guesses.popleft()
        return len(guesses) < _MOST_WRONG

    def _note(self, event: str, account: LinkedAccount) -> None:
        about = {"channel": account.channel, "account_id": account.account_id, "user_id": account.user_id}
        self._audit.note("config", {"event": event, **about}, None)


def _read_codes(text: str) -> list[str]:
    """A code alone in the text, or alone in one of its first lines: a mail has a subject and a greeting."""
    lines = text[:1000].splitlines()[:_LINES_WITH_CODE]
    return [code for one in (" ".join(lines), *lines) if (code := _read_code(one)) is not None]


def _read_code(text: str) -> str | None:
    words = text.split()
    if words and words[0].casefold() in _BEFORE_CODE:
        words = words[1:]
    code = "".join(words).replace("-", "").upper()
    return code if len(code) == _CODE_CHARS and set(code) <= set(_ALPHABET) else None
