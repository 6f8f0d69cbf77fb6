"""The two servers of a mailbox: IMAP to read it, SMTP to send. All of it blocks, and runs in threads."""

from __future__ import annotations

import contextlib
import smtplib
import ssl
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from typing import Final, Protocol, cast

import imapclient
from imapclient.exceptions import IMAPClientError, LoginError

from annabelle.channels.channel import DeliveryUnknown, NotDelivered
from annabelle.channels.email.incoming_mail import MailPosition
from annabelle.core.connections import MailAccount, MailServerAddress
from annabelle.core.network_access import describe_certificate_error, make_client_context
from annabelle.core.smtp import connect_smtp

_AGAIN_SECONDS: Final = 10.0
_SLICE_SECONDS: Final = 1.0
_WITHOUT_IDLE_SECONDS: Final = 15.0
_RENUMBERED: Final = timedelta(days=2)
_MOST_AT_ONCE: Final = 20
_BODY, _HEAD = "BODY.PEEK[]", "BODY.PEEK[HEADER]"


class _Imap(Protocol):
    """The part of the library that is used; it has no types of its own."""

    def plain_login(self, identity: str, password: str) -> object: ...
    def login(self, username: str, password: str) -> object: ...
    def starttls(self, ssl_context: ssl.SSLContext | None = None) -> object: ...
    def logout(self) -> object: ...
    def shutdown(self) -> None: ...
    def has_capability(self, capability: str) -> bool: ...
    def select_folder(self, folder: str, readonly: bool = False) -> Mapping[bytes, int]: ...
    def search(self, criteria: Sequence[object]) -> list[int]: ...
    def fetch(self, messages: Sequence[int], data: Sequence[str]) -> Mapping[int, Mapping[bytes, object]]: ...
    def idle(self) -> object: ...
    def idle_check(self, timeout: float | None = None) -> Sequence[object]: ...
    def idle_done(self) -> object: ...


@dataclass(frozen=True, slots=True)
class ReceivedMail:
    """A mail as the server keeps it; only its head if it is larger than was asked for."""

    position: MailPosition
    received_at: datetime
    size: int
    data: bytes
    whole: bool


class MailServers:
    def __init__(self, account: MailAccount, seconds: float, authority: str) -> None:
        self._account, self._seconds, self._authority = account, seconds, authority

    def find_end(self) -> MailPosition:
        """The position of the newest mail. Raises if the mailbox cannot be opened."""
        with self._open_inbox() as (_, validity, newest):
            return MailPosition(validity, newest)

    def wait_for_mails(
        self, after: MailPosition, seconds: float, stop: threading.Event, most_bytes: int
    ) -> tuple[list[ReceivedMail], MailPosition]:
        """The mails behind a position, oldest first, and the position to go on from."""
        with self._open_inbox() as (imap, validity, newest):
            new = _find_new(imap, after, validity)
            if not new and _wait_for_change(imap, seconds, stop):
                new = _find_new(imap, after, validity)
            uids = new[:_MOST_AT_ONCE]
            found = [_load(imap, MailPosition(validity, uid), most_bytes) for uid in uids]
            reached = max(uids, default=after.uid if after.validity == validity else newest)
            return [mail for mail in found if mail is not None], MailPosition(validity, reached)

    def load(self, position: MailPosition, most_bytes: int) -> ReceivedMail | None:
        with self._open_inbox() as (imap, validity, _):
            return _load(imap, position, most_bytes) if validity == position.validity else None

    def find_head(self, message_id: str | None, sender: str) -> bytes | None:
        """The head of the mail with this Message-ID, or else of the last one that this sender wrote."""
        with self._open_inbox() as (imap, validity, _):
            found = imap.search(["HEADER", "Message-ID", message_id]) if message_id else []
            found = found or imap.search(["FROM", sender])
            mail = _load(imap, MailPosition(validity, max(found)), 0) if found else None
            return None if mail is None else mail.data

    def send(self, mail: EmailMessage, recipient: str) -> None:
        """Raises NotDelivered or DeliveryUnknown. Until the content is sent, nothing was."""
        try:
            server = connect_smtp(self._account, self._seconds, make_client_context(self._authority))
        except smtplib.SMTPAuthenticationError as error:
            raise NotDelivered("The mail server does not accept the user name or the password.") from error
        except ssl.SSLCertVerificationError as error:
            raise NotDelivered(_explain_certificate(self._account.smtp, error)) from error
        except (smtplib.SMTPException, OSError) as error:
            raise NotDelivered("The server for outgoing mail is out of reach.", retry_after=_AGAIN_SECONDS) from error
        try:
            _hand_over(server, self._account.address, recipient, mail.as_bytes(policy=SMTP))
        finally:
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()

    @contextmanager
    def _open_inbox(self) -> Generator[tuple[_Imap, int, int]]:
        """The connection, the life number of the inbox and the number of its newest mail."""
        imap: _Imap | None = None
        try:
            imap = self._connect_imap()
            selected = imap.select_folder("INBOX", readonly=True)
            yield imap, int(selected[b"UIDVALIDITY"]), int(selected[b"UIDNEXT"]) - 1
        except LoginError as error:
            raise NotDelivered("The mail server does not accept the user name or the password.") from error
        except ssl.SSLCertVerificationError as error:
            raise NotDelivered(_explain_certificate(self._account.imap, error)) from error
        except (IMAPClientError, OSError, EOFError, KeyError) as error:
            raise NotDelivered("The mail server is out of reach.", retry_after=_AGAIN_SECONDS) from error
        finally:
            if imap is not None:
                with contextlib.suppress(Exception):
                    imap.logout()

    def _connect_imap(self) -> _Imap:
        server, context = self._account.imap, make_client_context(self._authority)
        client = imapclient.IMAPClient(
            server.host, port=server.port, ssl=server.security == "tls", ssl_context=context, timeout=self._seconds
        )
        imap = cast("_Imap", client)
        try:
            if server.security == "starttls":
                imap.starttls(context)
            # Only this mechanism takes every character in a password.
            sign_in = imap.plain_login if imap.has_capability("AUTH=PLAIN") else imap.login
            sign_in(self._account.username, self._account.password.get_secret_value())
        except BaseException:
            with contextlib.suppress(Exception):
                imap.shutdown()
            raise
        return imap


def _find_new(imap: _Imap, after: MailPosition, validity: int) -> list[int]:
    if validity != after.validity:
        # The folder was made again and its mails have new numbers; what was read before is known by its Message-ID.
        return sorted(imap.search(["SINCE", (datetime.now(UTC) - _RENUMBERED).date()]))
    found = imap.search(["UID", f"{after.uid + 1}:*"])
    return sorted(uid for uid in found if uid > after.uid)  # the star stands for the last mail, even if it is older


def _wait_for_change(imap: _Imap, seconds: float, stop: threading.Event) -> bool:
    """Whether to look again. Looks at `stop` every second, so that nobody waits for this thread."""
    if not imap.has_capability("IDLE"):
        stop.wait(min(seconds, _WITHOUT_IDLE_SECONDS))
        return False
    until = time.monotonic() + seconds
    imap.idle()
    changed = False
    while not changed and not stop.is_set() and (began := time.monotonic()) < until:
        # A connection that is over tells nothing, at once; the next command fails then.
        changed = bool(imap.idle_check(timeout=_SLICE_SECONDS)) or time.monotonic() - began < _SLICE_SECONDS / 2
    imap.idle_done()
    return changed


def _load(imap: _Imap, position: MailPosition, most_bytes: int) -> ReceivedMail | None:
    about = imap.fetch([position.uid], ["RFC822.SIZE", "INTERNALDATE"]).get(position.uid)
    if about is None:
        return None  # deleted meanwhile
    size, date = int(cast("int", about[b"RFC822.SIZE"])), cast("datetime", about[b"INTERNALDATE"])
    wanted, name = (_BODY, b"BODY[]") if size <= most_bytes else (_HEAD, b"BODY[HEADER]")
    data = imap.fetch([position.uid], [wanted]).get(position.uid, {}).get(name)
    if not isinstance(data, bytes):
        return None
    return ReceivedMail(position, date.astimezone(UTC), size, data, whole=size <= most_bytes)


def _hand_over(server: smtplib.SMTP, sender: str, recipient: str, data: bytes) -> None:
    try:
        _require_success(*server.mail(sender))
        _require_success(*server.rcpt(recipient))
    except (smtplib.SMTPException, OSError) as error:
        raise NotDelivered("The mail server hung up.", retry_after=_AGAIN_SECONDS) from error
    try:
        code, said = server.data(data)
    except smtplib.SMTPDataError as error:
        code, said = error.smtp_code, str(error.smtp_error).encode()
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryUnknown("The mail server hung up while it took the mail.") from error
    _require_success(code, said)


def _require_success(code: int, said: bytes) -> None:
    if 200 <= code < 300:
        return
    told = said.decode("utf-8", "replace")[:200]
    raise NotDelivered(f"The mail server refused: {code} {told}", retry_after=_AGAIN_SECONDS if code < 500 else None)


def _explain_certificate(server: MailServerAddress, error: ssl.SSLCertVerificationError) -> str:
    return " ".join(describe_certificate_error(f"The mail server {server.host}:{server.port}", error))
