"""The mailbox of the account that is connected now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from annabelle.core.connections import MailAccount
from annabelle.servers.gmail.accounts import Accounts
from annabelle.servers.gmail.google import GoogleSession
from annabelle.servers.gmail.mail.imap_connection import CONNECT_AGAIN, WRONG_PASSWORD
from annabelle.servers.gmail.mail.mailbox import Mailbox
from annabelle.servers.gmail.reach import Reach
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail import google_mailbox, imap_mailbox
else:
    google_mailbox = deferred_module("annabelle.servers.gmail.mail.google_mailbox")
    imap_mailbox = deferred_module("annabelle.servers.gmail.mail.imap_mailbox")


class Mailboxes:
    """Keeps the mailbox as long as its account is the connected one."""

    def __init__(self, accounts: Accounts, state: Path, reach: Reach) -> None:
        self._accounts, self._state, self._reach = accounts, state, reach
        self._account: GoogleSession | MailAccount | None = None
        self._mailbox: Mailbox | None = None
        self._former: list[Mailbox] = []

    def current(self) -> Mailbox:
        """The mailbox to work with; Unavailable with the command to run when nothing is connected."""
        account = self._accounts.require()
        if self._mailbox is None or account is not self._account:
            if self._mailbox is not None:
                self._former.append(self._mailbox)  # a call may still use it
            self._account = account
            self._mailbox = (
                google_mailbox.GoogleMailbox(account)
                if isinstance(account, GoogleSession)
                else imap_mailbox.ImapMailbox(account, self._state, self._reach)
            )
        return self._mailbox

    def missing(self) -> str | None:
        """What keeps mail from working as far as it is known, with the command that mends it."""
        told = self._accounts.missing()
        if told is not None or self._mailbox is None or isinstance(self._account, GoogleSession):
            return told
        refused = self._mailbox.rejected and self._account is self._accounts.mail()
        return f"{WRONG_PASSWORD} {CONNECT_AGAIN}" if refused else None

    async def close(self) -> None:
        held, self._former = [*self._former, *([self._mailbox] if self._mailbox else [])], []
        self._mailbox = self._account = None
        for mailbox in held:
            await mailbox.close()
