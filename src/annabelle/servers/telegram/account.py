"""The connected account, read when it is used: `annabelle connect telegram` needs no restart to count."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from annabelle.core.connections import TelegramAccount, connection_file, read_connection
from annabelle.core.errors import AnnabelleError, Unavailable
from annabelle.core.home import Home

CONNECT = "Run: annabelle connect telegram"
_KIND = "telegram"

Stamp = tuple[int, int, int]


class SignedOut(Unavailable):
    """Telegram no longer knows the session: it was ended on another device, or the account is gone."""

    def __init__(self) -> None:
        super().__init__("Telegram has ended this session.", hint=CONNECT)


@dataclass(slots=True)
class AccountFile:
    """The account's file, read again only when it has changed."""

    home: Home
    _stamp: Stamp | None = None
    _account: TelegramAccount | None = None

    def read(self) -> TelegramAccount:
        """The account; Unavailable when there is none or Telethon is not installed."""
        stamp = self._look()
        if stamp is None or stamp != self._stamp:
            self._account = read_connection(self.home, _KIND, TelegramAccount)
            self._stamp = stamp
        if self._account is None:
            raise Unavailable("Telegram is not connected.", hint=CONNECT)
        if importlib.util.find_spec("telethon") is None:
            raise Unavailable(
                "Telegram needs a library that is not installed.", hint="Run: pip install 'annabelle[telegram]'"
            )
        return self._account

    def missing(self) -> str | None:
        """What keeps the account from being used, as one sentence; None when nothing does."""
        try:
            self.read()
        except AnnabelleError as error:
            return f"{error.message} {error.hint}" if error.hint else error.message
        return None

    def _look(self) -> Stamp | None:
        try:
            status = connection_file(self.home, _KIND).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
