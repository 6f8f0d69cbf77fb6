"""Sends mail over SMTP with a copy in the sent folder, and keeps drafts in an IMAP folder."""

from __future__ import annotations

import asyncio
import contextlib
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import SMTP, compat32

import anyio

from annabelle.core.connections import MailAccount
from annabelle.core.errors import (
    AnnabelleError,
    Conflict,
    InvalidArguments,
    NotFound,
    OutcomeUnknown,
    TooLarge,
    Unavailable,
)
from annabelle.core.smtp import connect_smtp
from annabelle.servers.kit import StopSign, in_thread
from annabelle.servers.mail_calendar.config import ServerAccess, SignedIn, certificate_refused, password_refused
from annabelle.servers.mail_calendar.mail.headers import check_address, find_message_ids, parse_addresses
from annabelle.servers.mail_calendar.mail.imap_client import ImapClient
from annabelle.servers.mail_calendar.mail.imap_connection import ImapConnection
from annabelle.servers.mail_calendar.mail.imap_folders import DRAFT, SENT, ImapFolders
from annabelle.servers.mail_calendar.mail.imap_messages import (
    ImapMessageId,
    build_summary,
    delete_messages,
    find_by_header_id,
    get_validity,
    load_header_id,
    load_raw,
    load_summaries,
    make_draft_id,
    parse_draft_id,
)
from annabelle.servers.mail_calendar.mail.mailbox import MailDraft, SendOutcome
from annabelle.servers.mail_calendar.mail.message_parser import parse_mail, raw_header


def list_drafts(client: ImapClient, count: int) -> list[MailDraft]:
    folder = ImapFolders.load(client).special(DRAFT)
    if folder is None:
        return []
    validity = get_validity(client.select_folder(folder.name, readonly=True))
    uids = sorted(client.search([b"UNDELETED"]), reverse=True)[:count]
    return [
        MailDraft.from_summary(
            make_draft_id(load_header_id(client, uid), ImapMessageId(folder.name, validity, uid)), line
        )
        for uid, line in load_summaries(client, folder, validity, uids).items()
    ]


def save_draft(client: ImapClient, message_id: str, data: bytes) -> MailDraft:
    """Save a draft, replacing one with the same Message-ID."""
    folder = ImapFolders.load(client).ensure(client, DRAFT)
    client.select_folder(folder.name)
    old = find_by_header_id(client, message_id)
    client.append(folder.name, data, [b"\\Draft", b"\\Seen"])
    validity = get_validity(client.select_folder(folder.name))
    now = find_by_header_id(client, message_id)
    former = [uid for uid in old if uid in now and uid != max(now)]
    if former:
        delete_messages(client, former)
    place = ImapMessageId(folder.name, validity, max(now, default=0))
    summary = build_summary(place, folder.label, {}, parse_mail(data))
    return MailDraft.from_summary(make_draft_id(message_id, place), summary)


def find_draft(client: ImapClient, given: str) -> ImapMessageId:
    """Find a draft and select its folder."""
    wanted = parse_draft_id(given)
    folder = ImapFolders.load(client).special(DRAFT)
    if folder is not None:
        validity = get_validity(client.select_folder(folder.name))
        if isinstance(wanted, ImapMessageId):
            known = wanted.folder == folder.name and wanted.validity == validity
            uids = [wanted.uid] if known else []
        else:
            uids = find_by_header_id(client, wanted)
        # A draft that is marked as deleted still exists.
        standing = set(client.search([b"UNDELETED"])) & set(uids)
        if standing:
            return ImapMessageId(folder.name, validity, max(standing))
    raise NotFound("There is no such draft any more.", hint="list_drafts shows them.", field="draft_id")


def load_draft(client: ImapClient, given: str) -> bytes:
    """Load a whole draft. Raises TooLarge if it is cut, because a part must not be sent."""
    data, size = load_raw(client, find_draft(client, given))
    if size > len(data):
        raise TooLarge(f"The draft has {size} bytes, which is too large to be sent from here.", field="draft_id")
    return data


def remove_draft(client: ImapClient, given: str) -> None:
    """Delete a draft, with older versions left by an interrupted rewrite."""
    place = find_draft(client, given)
    wanted = parse_draft_id(given)
    delete_messages(client, find_by_header_id(client, wanted) if isinstance(wanted, str) else [place.uid])


_NOTHING_SENT = "; nothing was sent"


@dataclass(slots=True)
class SmtpReceipt:
    """The server's answer, kept outside the thread in case the call is cancelled."""

    taken: bool = False
    refused: list[str] = field(default_factory=list[str])


async def deliver_mail(
    account: MailAccount, recipients: Sequence[str], data: bytes, receipt: SmtpReceipt, access: ServerAccess
) -> None:
    """Send a mail. Raises if the server accepts none of the addresses."""
    named = f"The server for outgoing mail {account.smtp.host}:{account.smtp.port}"

    def connect_and_send(stop: StopSign, let_in: SignedIn) -> None:
        try:
            server = connect_smtp(account, access.seconds, access.tls_context())
        except smtplib.SMTPAuthenticationError as error:
            raise password_refused() from error
        except ssl.SSLCertVerificationError as error:
            raise certificate_refused(named, error) from error
        except TimeoutError as error:
            raise access.no_answer_error(named, _NOTHING_SENT) from error
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

    async with access.sign_in_timeout(named, _NOTHING_SENT) as let_in:
        await in_thread(lambda stop: connect_and_send(stop, let_in))


def _hand_over(server: smtplib.SMTP, sender: str, recipients: Sequence[str], data: bytes, stop: StopSign) -> list[str]:
    """Until the content is sent, every failure means that nothing was sent."""
    refused: list[str] = []
    try:
        size = (f"size={len(data)}",) if server.has_extn("size") else ()
        _require_success(server.mail(sender, size), "The mail server does not take mail from this address")
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
    _require_success((code, b""), "The mail server did not take the mail; nothing was sent")
    return refused


def _require_success(answer: tuple[int, bytes], sentence: str) -> None:
    code = answer[0]
    if 200 <= code < 300:
        return
    if code == 552:
        raise TooLarge("The mail is larger than the mail server takes; nothing was sent.")
    error: type[AnnabelleError] = Unavailable if 400 <= code < 500 else InvalidArguments
    raise error(f"{sentence}.")


_KEEP_SECONDS = 20.0


class ImapOutbox:
    """Sends each Message-ID once."""

    def __init__(self, account: MailAccount, connection: ImapConnection, access: ServerAccess) -> None:
        self._account, self._connection, self._access = account, connection, access
        self._lock = asyncio.Lock()

    async def send(self, mail: EmailMessage) -> SendOutcome:
        """Send the mail, without its Bcc line."""
        recipients = _read_recipients(mail)
        del mail["Bcc"]
        async with self._lock:
            return await self._send(str(mail["Message-ID"]), recipients, mail.as_bytes())

    async def send_draft(self, draft_id: str) -> SendOutcome:
        async with self._lock:
            data = await self._connection.run(lambda client, stop: load_draft(client, draft_id))
            raw = message_from_bytes(data, policy=compat32)
            recipients = _read_recipients(raw)
            del raw["Bcc"]
            own = next(iter(find_message_ids(raw_header(raw, "Message-ID"))), "")
            sent = await self._send(own, recipients, raw.as_bytes(policy=SMTP))
            try:
                await self._connection.run(lambda client, stop: remove_draft(client, draft_id))
            except AnnabelleError:
                return sent.model_copy(update={"notice": "It was sent, but the draft is still there."})
            return sent

    async def _send(self, message_id: str, recipients: list[str], data: bytes) -> SendOutcome:
        """Send under the lock, so that two tries with the same Message-ID send one mail."""
        before = await self._connection.run(lambda client, stop: _find_in_sent(client, message_id))
        if before is not None:
            return SendOutcome(id=before.encode(), already_sent=True)
        receipt = SmtpReceipt()
        try:
            await deliver_mail(self._account, list(dict.fromkeys(recipients)), data, receipt, self._access)
        except asyncio.CancelledError:
            if receipt.taken:  # a repeated call must find the sent mail
                with anyio.move_on_after(_KEEP_SECONDS, shield=True), contextlib.suppress(AnnabelleError):
                    await self._keep_copy(message_id, data)
            raise
        notice = f"The mail server did not take: {', '.join(receipt.refused[:10])}." if receipt.refused else None
        try:
            kept = await self._keep_copy(message_id, data)
        except AnnabelleError:
            return SendOutcome(notice=" ".join(filter(None, ["It was sent, but no copy could be kept.", notice])))
        return SendOutcome(id=kept.encode() if kept is not None else None, notice=notice)

    async def _keep_copy(self, message_id: str, data: bytes) -> ImapMessageId | None:
        return await self._connection.run(lambda client, stop: _keep_sent(client, message_id, data))


def _read_recipients(mail: Message) -> list[str]:
    """Recipients of a mail. Any program may have written a draft, so the error names an invalid address."""
    named = [
        found for name in ("To", "Cc", "Bcc") for found in parse_addresses(raw_header(mail, name)) if "@" in found[1]
    ]
    if not named:
        raise Conflict("The mail names nobody it could go to.", hint="update_draft sets an address.")
    return [check_address(name, address, "draft_id").addr_spec for name, address in named]


def _find_in_sent(client: ImapClient, message_id: str) -> ImapMessageId | None:
    folder = ImapFolders.load(client).special(SENT)
    if folder is None or not message_id:
        return None
    validity = get_validity(client.select_folder(folder.name, readonly=True))
    uids = find_by_header_id(client, message_id)
    return ImapMessageId(folder.name, validity, uids[-1]) if uids else None


def _keep_sent(client: ImapClient, message_id: str, data: bytes) -> ImapMessageId | None:
    """Save a copy in the sent folder, unless the server has done so."""
    folder = ImapFolders.load(client).ensure(client, SENT)
    if _find_in_sent(client, message_id) is None:
        client.append(folder.name, data, [b"\\Seen"])
    return _find_in_sent(client, message_id)
