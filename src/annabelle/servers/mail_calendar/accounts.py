"""Connected accounts, read on every use, so that connecting needs no restart."""

from __future__ import annotations

from annabelle.core.connections import ConnectionFile, GoogleAccount, MailAccount
from annabelle.core.errors import ConfigMistake, Unavailable
from annabelle.servers.mail_calendar.config import MailCalendarConfig
from annabelle.servers.mail_calendar.google_session import SIGN_IN_AGAIN, SIGN_IN_GONE, GoogleSession

NOT_CONNECTED = "No mail account is connected."
CONNECT = "Run: annabelle connect google, or: annabelle connect mail"


class Accounts:
    """Accounts of mail and calendar. Google comes first if both are connected."""

    def __init__(self, config: MailCalendarConfig) -> None:
        self._config = config
        self._google = ConnectionFile(config.home, "google", GoogleAccount)
        self._mail = ConnectionFile(config.home, "mail", MailAccount)
        self._session: GoogleSession | None = None
        self._former: list[GoogleSession] = []

    def google(self) -> GoogleSession | None:
        """Session of the connected Google account, a new one after it was connected again."""
        account, held = self._google.load(), self._session
        if held is not None and held.account is not account:
            self._former.append(held)  # a call may still use it
            self._session = None
        if self._session is None and account is not None:
            self._session = GoogleSession(account, self._config.google, self._config.google_retry)
        return self._session

    def mail(self) -> MailAccount | None:
        """Connected mailbox, the same object until an account is connected again."""
        return self._mail.load()

    def require(self, missing: str = NOT_CONNECTED) -> GoogleSession | MailAccount:
        """The account to use. Raises Unavailable, with the command to run, if there is none."""
        account = self.google() or self.mail()
        if account is None:
            raise Unavailable(missing, hint=CONNECT)
        return account

    async def describe_missing(self) -> str | None:
        """Why mail and calendar do not work, as far as known, with the command that fixes it."""
        try:
            session = self.google()
            if session is not None:
                return f"{SIGN_IN_GONE} {SIGN_IN_AGAIN}" if session.rejected else None
            return None if self.mail() is not None else f"{NOT_CONNECTED} {CONNECT}"
        except ConfigMistake as damaged:
            return f"{damaged.message} {damaged.hint}"

    async def close(self) -> None:
        sessions, self._former = [*self._former, *([self._session] if self._session else [])], []
        self._session = None
        for session in sessions:
            await session.close()
