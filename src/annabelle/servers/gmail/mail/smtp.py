"""Sending through the person's own mail server."""

from __future__ import annotations

import base64
import contextlib
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from annabelle.core.connections import MailAccount
from annabelle.core.errors import AnnabelleError, InvalidArguments, OutcomeUnknown, TooLarge, Unavailable
from annabelle.servers.gmail.mail.imap_connection import CONNECT_AGAIN, WRONG_PASSWORD
from annabelle.servers.gmail.reach import LetIn, Reach, distrusted
from annabelle.servers.kit import StopSign, in_thread

SECONDS = 60.0
"""How long a server that has let us in may take for an answer; some look through a mail before they take it."""
_NOTHING_SENT = "; nothing was sent"


@dataclass(slots=True)
class Receipt:
    """What the server said, for a call that is cancelled at that moment too."""

    taken: bool = False
    refused: list[str] = field(default_factory=list[str])
    """The addresses it did not take."""


async def deliver(account: MailAccount, recipients: Sequence[str], data: bytes, receipt: Receipt, reach: Reach) -> None:
    """Hand a mail over. When the server takes none of the addresses, that is an error."""
    named = f"The server for outgoing mail {account.smtp.host}:{account.smtp.port}"

    def work(stop: StopSign, let_in: LetIn) -> None:
        try:
            server = _connected(account, reach)
        except smtplib.SMTPAuthenticationError as error:
            raise Unavailable(WRONG_PASSWORD, hint=CONNECT_AGAIN) from error
        except ssl.SSLCertVerificationError as error:
            raise distrusted(named, error) from error
        except TimeoutError as error:
            raise reach.silent(named, _NOTHING_SENT) from error
        except (smtplib.SMTPException, OSError) as error:
            raise Unavailable(
                "The server for outgoing mail can not be reached; nothing was sent.", hint="Try again in a moment."
            ) from error
        let_in()
        try:
            receipt.refused = _hand_over(server, account.address, recipients, data, stop)
            receipt.taken = True
        finally:
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()

    async with reach.waiting(named, _NOTHING_SENT) as let_in:
        await in_thread(lambda stop: work(stop, let_in))


def _connected(account: MailAccount, reach: Reach) -> smtplib.SMTP:
    door, context = account.smtp, reach.tls()
    server = (
        smtplib.SMTP_SSL(door.host, door.port, timeout=reach.seconds, context=context)
        if door.security == "tls"
        else smtplib.SMTP(door.host, door.port, timeout=reach.seconds)
    )
    try:
        if door.security == "starttls":
            server.starttls(context=context)
        server.ehlo_or_helo_if_needed()
        if server.has_extn("auth"):
            _sign_in(server, account.username, account.password.get_secret_value())
        if server.sock is not None:
            server.sock.settimeout(SECONDS)
    except BaseException:
        server.close()
        raise
    return server


def _sign_in(server: smtplib.SMTP, username: str, password: str) -> None:
    """The way `annabelle connect mail` tried; the library's own takes ASCII only."""
    if "PLAIN" not in server.esmtp_features.get("auth", "").upper().split():
        server.login(username, password)
        return
    word = base64.b64encode(f"\0{username}\0{password}".encode()).decode()
    code, said = server.docmd("AUTH", f"PLAIN {word}")
    if code not in (235, 503):
        raise smtplib.SMTPAuthenticationError(code, said)


def _hand_over(server: smtplib.SMTP, sender: str, recipients: Sequence[str], data: bytes, stop: StopSign) -> list[str]:
    """Until the content is sent nothing has happened, so up to there every failure is a clear no."""
    refused: list[str] = []
    try:
        _expect(server.mail(sender, _size_option(server, data)), "The mail server does not take mail from this address")
        for address in recipients:
            code, _ = server.rcpt(address)
            if code not in (250, 251):
                refused.append(address)
        stop.check()
    except (smtplib.SMTPException, OSError) as error:
        raise Unavailable("The mail server hung up; nothing was sent.", hint="Try again in a moment.") from error
    if len(refused) == len(recipients):
        raise InvalidArguments(
            f"The mail server does not take mail for {', '.join(refused[:5])}.", hint="Check the address.", field="to"
        )
    try:
        code, _ = server.data(data)
    except smtplib.SMTPDataError as error:
        raise Unavailable("The mail server did not take the mail; nothing was sent.") from error
    except (smtplib.SMTPException, OSError) as error:
        raise OutcomeUnknown(
            "The mail server hung up while the mail was handed over; it may or may not have been sent.",
            hint="Look at the sent mail before you try again.",
        ) from error
    _expect((code, b""), "The mail server did not take the mail; nothing was sent")
    return refused


def _expect(answer: tuple[int, bytes], sentence: str) -> None:
    code = answer[0]
    if 200 <= code < 300:
        return
    if code == 552:
        raise TooLarge("The mail is larger than the mail server takes; nothing was sent.")
    error: type[AnnabelleError] = Unavailable if 400 <= code < 500 else InvalidArguments
    raise error(f"{sentence}.")


def _size_option(server: smtplib.SMTP, data: bytes) -> Sequence[str]:
    return (f"size={len(data)}",) if server.has_extn("size") else ()
