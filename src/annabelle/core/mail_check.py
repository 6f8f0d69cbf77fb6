"""Signs in to a mail account's servers once, so that only working accounts are saved."""

from __future__ import annotations

import base64
import contextlib
import imaplib
import smtplib
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import httpx2 as httpx

from annabelle.core.connections import MailAccount, MailServerAddress
from annabelle.core.errors import AnnabelleError, CallerMistake, OperatorMistake, Unavailable
from annabelle.core.network_access import (
    add_authority,
    describe_certificate_error,
    find_certificate_error,
    make_client_context,
)

C = TypeVar("C", imaplib.IMAP4, smtplib.SMTP)

CHECK_SECONDS = 20.0
_NOTHING_KEPT = "Nothing was kept."
_WHO_AM_I = '<?xml version="1.0"?><propfind xmlns="DAV:"><prop><current-user-principal/></prop></propfind>'


class _NotOfferedError(Exception):
    """The server does not offer encryption."""


def check_imap(account: MailAccount, authority: str = "") -> None:
    door, password = account.imap, account.password.get_secret_value()
    where = f"The server for reading mail (IMAP at {door.host}:{door.port})"
    with _explain_errors(where):
        connection = _open_imap(door, make_client_context(authority))
        try:
            if "AUTH=PLAIN" in connection.capabilities:
                connection.authenticate("PLAIN", lambda _: _plain_credentials(account.username, password))
            else:
                # imaplib does not quote the user name itself.
                quoted = account.username.replace("\\", "\\\\").replace('"', '\\"')
                connection.login(f'"{quoted}"', password)
        finally:
            with contextlib.suppress(OSError, imaplib.IMAP4.error):
                connection.logout()


def check_smtp(account: MailAccount, authority: str = "") -> None:
    """Check that mail can be sent, without sending any."""
    door, password = account.smtp, account.password.get_secret_value()
    where = f"The server for sending mail (SMTP at {door.host}:{door.port})"
    with _explain_errors(where):
        connection = _open_smtp(door, make_client_context(authority))
        try:
            connection.ehlo()
            if "PLAIN" in connection.esmtp_features.get("auth", "").upper().split():
                # smtplib's own login only accepts ASCII.
                word = base64.b64encode(_plain_credentials(account.username, password)).decode()
                code, said = connection.docmd("AUTH", f"PLAIN {word}")
                if code not in (235, 503):
                    raise smtplib.SMTPAuthenticationError(code, said)
            else:
                connection.login(account.username, password)
        finally:
            with contextlib.suppress(OSError, smtplib.SMTPException):
                connection.quit()


def check_caldav(account: MailAccount, authority: str = "") -> None:
    url = account.caldav_url or ""
    where = f"The calendar (CalDAV at {httpx.URL(url).host})"
    username = account.caldav_username or account.username
    password = (account.caldav_password or account.password).get_secret_value()
    try:
        with httpx.Client(
            verify=add_authority(httpx.create_ssl_context(trust_env=False), authority),
            timeout=CHECK_SECONDS,
            trust_env=False,
            follow_redirects=True,
            max_redirects=5,
            auth=(username, password),
        ) as http:
            answer = http.request(
                "PROPFIND", url, content=_WHO_AM_I, headers={"Depth": "0", "Content-Type": "application/xml"}
            )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        wrong = find_certificate_error(error)
        raise (_distrust_error(where, wrong) if wrong is not None else _unreachable_error(where)) from None
    if answer.status_code in (401, 403):
        raise _refusal_error(where)
    if answer.status_code != 207:
        raise OperatorMistake(
            f"{where} answered {answer.status_code}, which no calendar does.",
            hint=f"Check the address. {_NOTHING_KEPT}",
        )


def _open_imap(door: MailServerAddress, context: ssl.SSLContext) -> imaplib.IMAP4:
    if door.security == "tls":
        return imaplib.IMAP4_SSL(door.host, door.port, ssl_context=context, timeout=CHECK_SECONDS)
    connection = imaplib.IMAP4(door.host, door.port, timeout=CHECK_SECONDS)

    def start_tls() -> None:
        if "STARTTLS" not in connection.capabilities:
            raise _NotOfferedError
        connection.starttls(context)

    return _secure(door, connection, start_tls, connection.shutdown)


def _open_smtp(door: MailServerAddress, context: ssl.SSLContext) -> smtplib.SMTP:
    if door.security == "tls":
        return smtplib.SMTP_SSL(door.host, door.port, context=context, timeout=CHECK_SECONDS)
    connection = smtplib.SMTP(door.host, door.port, timeout=CHECK_SECONDS)
    return _secure(door, connection, lambda: connection.starttls(context=context), connection.close)


def _secure(door: MailServerAddress, connection: C, begin: Callable[[], object], close: Callable[[], object]) -> C:
    """Encrypt the connection unless its security is "none"; close it on failure."""
    if door.security == "none":
        return connection
    try:
        begin()
    except BaseException:
        with contextlib.suppress(OSError):
            close()
        raise
    return connection


def _plain_credentials(username: str, password: str) -> bytes:
    return f"\0{username}\0{password}".encode()


@contextmanager
def _explain_errors(where: str) -> Generator[None]:
    """Turn every failure into a sentence about this server, without its response, which may repeat the password."""
    try:
        yield
    except AnnabelleError:
        raise
    except ssl.SSLCertVerificationError as error:
        raise _distrust_error(where, error) from None
    except ssl.SSLError:
        raise OperatorMistake(
            f"{where} does not speak TLS there.", hint=f"Try another port or encryption. {_NOTHING_KEPT}"
        ) from None
    except (imaplib.IMAP4.abort, smtplib.SMTPServerDisconnected, smtplib.SMTPConnectError):
        raise _unreachable_error(where) from None
    except (imaplib.IMAP4.error, smtplib.SMTPAuthenticationError):
        raise _refusal_error(where) from None
    except (_NotOfferedError, smtplib.SMTPNotSupportedError):
        raise OperatorMistake(
            f"{where} does not offer what was asked of it: STARTTLS, or a sign-in.",
            hint=f"Try another port or encryption. {_NOTHING_KEPT}",
        ) from None
    except (OSError, smtplib.SMTPException, EOFError, UnicodeError):
        raise _unreachable_error(where) from None


def _distrust_error(where: str, error: ssl.SSLCertVerificationError) -> OperatorMistake:
    sentence, hint = describe_certificate_error(where, error)
    return OperatorMistake(sentence, hint=f"{hint} {_NOTHING_KEPT}")


def _refusal_error(where: str) -> CallerMistake:
    return CallerMistake(f"{where} refused the user name or the password.", hint=_NOTHING_KEPT)


def _unreachable_error(where: str) -> Unavailable:
    return Unavailable(f"{where} can not be reached.", hint=f"Check the name and the port. {_NOTHING_KEPT}")
