"""One IMAP connection: opened on demand, reopened when it breaks, used by one call at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Callable
from typing import TypeVar

from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError

from annabelle.core.connections import MailAccount
from annabelle.core.errors import AnnabelleError, Unavailable
from annabelle.servers.kit import StopSign, in_thread
from annabelle.servers.mail_calendar.config import ServerAccess, SignedIn, certificate_refused, password_refused
from annabelle.servers.mail_calendar.mail import imap_client
from annabelle.servers.mail_calendar.mail.imap_client import ImapClient

T = TypeVar("T")
_log = logging.getLogger(__name__)

_IDLE_SECONDS = 20.0
"""After this many idle seconds, a connection is checked before use."""
_WAIT_SECONDS = 100.0

ImapWork = Callable[[ImapClient, StopSign], T]


class ImapConnection:
    """Runs work on the mailbox. Work must be repeatable, because it is retried on a new connection."""

    def __init__(self, account: MailAccount, access: ServerAccess) -> None:
        self.rejected = False
        """Whether the server refused the password. Shown by readiness."""
        self._account, self._access = account, access
        self._server = f"The mail server {account.imap.host}:{account.imap.port}"
        self._lock = asyncio.Lock()
        self._line = _ImapLine()

    async def run(self, work: ImapWork[T]) -> T:
        """Run work. After a broken connection it is repeated once; a silent server is not retried."""
        try:
            async with asyncio.timeout(_WAIT_SECONDS), self._lock, self._access.sign_in_timeout(self._server) as let_in:
                return await self._guarded(work, let_in)
        except TimeoutError as error:
            raise Unavailable("The mail server takes too long.", hint="Try again in a moment.") from error

    async def _guarded(self, work: ImapWork[T], let_in: SignedIn) -> T:
        line = self._line
        finished = False

        def run_in_thread(stop: StopSign) -> T:
            nonlocal finished
            try:
                return self._retry_once(line, lambda: self._run_once(line, work, stop, let_in), stop)
            finally:
                finished = True
                if stop.stopped:
                    line.drop()

        try:
            return await in_thread(run_in_thread)
        finally:
            if not finished:
                self._line = _ImapLine()  # the thread still runs and keeps its connection
                line.drop()

    async def close(self) -> None:
        line, self._line = self._line, _ImapLine()
        client = line.client
        if client is not None:
            await in_thread(lambda stop: _log_out(client))

    def _run_once(self, line: _ImapLine, work: ImapWork[T], stop: StopSign, let_in: SignedIn) -> T:
        client = self._connected_client(line)
        let_in()
        result = work(client, stop)
        line.used = time.monotonic()
        return result

    def _retry_once(self, line: _ImapLine, work: Callable[[], T], stop: StopSign) -> T:
        for last in (False, True):
            stop.check()
            try:
                return work()
            except AnnabelleError:
                raise
            except IMAPClientError as error:
                line.drop()
                if last or not _is_broken(error):
                    raise _to_error(error) from error
            except ssl.SSLCertVerificationError as error:
                raise certificate_refused(self._server, error) from error
            except TimeoutError as error:
                line.drop()
                raise self._access.no_answer_error(self._server) from error
            except (OSError, EOFError) as error:
                line.drop()
                if last:
                    raise _to_error(error) from error
        raise AssertionError("the second attempt returns or raises")

    def _connected_client(self, line: _ImapLine) -> ImapClient:
        client = line.client
        if client is not None and time.monotonic() - line.used > _IDLE_SECONDS:
            try:
                imap_client.check_alive(client)
            except (IMAPClientError, OSError, EOFError):
                line.drop()
                client = None
        if client is None:
            client = imap_client.open_client(self._account.imap, self._access.seconds, self._access.tls_context())
            try:
                _sign_in(client, self._account)
            except LoginError as error:
                _log_out(client)
                if _is_broken(error) or "[UNAVAILABLE]" in str(error):
                    raise OSError("no sign-in for now") from error
                self.rejected = True
                raise password_refused() from error
            except BaseException:
                _log_out(client)
                raise
            self.rejected = False
            imap_client.set_long_timeout(client)
            line.client = client
        return client


class _ImapLine:
    def __init__(self) -> None:
        self.client: ImapClient | None = None
        self.used = 0.0

    def drop(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.shutdown()


def _sign_in(client: ImapClient, account: MailAccount) -> None:
    """Sign in like `annabelle connect mail`: only this mechanism accepts every character in a password."""
    sign_in = client.plain_login if client.has_capability("AUTH=PLAIN") else client.login
    sign_in(account.username, account.password.get_secret_value())


def _to_error(error: Exception) -> AnnabelleError:
    _log.info("The mail server failed: %s", type(error).__name__)
    if _is_broken(error):
        return Unavailable("The mail server can not be reached.", hint="Try again in a moment.")
    return Unavailable("The mail server refused what was asked of it.", hint="Look at the mailbox and try again.")


def _is_broken(error: Exception) -> bool:
    """The library distinguishes a broken connection from a refusal by error class, except at login."""
    kinds = (IMAPClientAbortError, OSError, EOFError)
    return isinstance(error, kinds) or isinstance(error.__context__, kinds)


def _log_out(client: ImapClient) -> None:
    with contextlib.suppress(Exception):
        client.logout()
