"""An IMAP and SMTP mailbox."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

from annabelle.core.connections import MailAccount
from annabelle.core.errors import AnnabelleError, TooLarge
from annabelle.servers.kit import StopSign
from annabelle.servers.kit.pagination import make_token, read_token
from annabelle.servers.mail_calendar.config import ServerAccess
from annabelle.servers.mail_calendar.mail import imap_folders, imap_outbox, imap_search
from annabelle.servers.mail_calendar.mail.imap_client import ImapClient
from annabelle.servers.mail_calendar.mail.imap_connection import ImapConnection
from annabelle.servers.mail_calendar.mail.imap_filters import ImapFilterStore, apply_to_new_mail
from annabelle.servers.mail_calendar.mail.imap_folders import TRASH, ImapFolder, ImapFolders
from annabelle.servers.mail_calendar.mail.imap_messages import (
    ImapMessageId,
    apply_label_change,
    load_raw,
    move_message,
    parse_message_id,
    plan_label_change,
    read_message,
    select_message,
)
from annabelle.servers.mail_calendar.mail.imap_outbox import ImapOutbox
from annabelle.servers.mail_calendar.mail.mailbox import (
    ArrivedMails,
    AttachmentContent,
    FilterAction,
    FilterCriteria,
    FoundMails,
    MailDraft,
    MailFilter,
    MailLabel,
    MailMessage,
    SendOutcome,
)
from annabelle.servers.mail_calendar.mail.message_parser import file_name, find_attachment, parse_mail
from annabelle.servers.mail_calendar.mail.outgoing_mail import keep_thread
from annabelle.servers.mail_calendar.mail.search_query import parse_query

_REMEMBERED_MOVES = 500


class ImapMailbox:
    """Uses one connection for all calls. While the process runs, ids of moved mails keep working."""

    def __init__(self, account: MailAccount, state: Path, access: ServerAccess) -> None:
        self.address = account.address
        self.filters_note: str | None = (
            "Annabelle applies this filter when new mail is asked for; the mail server knows nothing of it."
        )
        self.connection = ImapConnection(account, access)
        self._filters = ImapFilterStore(state / "filters.json", account.address)
        self._moved: OrderedDict[ImapMessageId, ImapMessageId] = OrderedDict()
        self._outbox = ImapOutbox(account, self.connection, access)

    @property
    def rejected(self) -> bool:
        return self.connection.rejected

    async def find(self, query: str, labels: tuple[str, ...], count: int, page_token: str | None) -> FoundMails:
        asked = parse_query(query)
        start = read_token(page_token)

        def search_folders(client: ImapClient, stop: StopSign) -> FoundMails:
            places, criteria = imap_search.plan_search(ImapFolders.load(client), asked, labels)
            hits = imap_search.search_folders(client, stop, places, criteria, asked.attachment, start + count + 1)
            lines = imap_search.load_hits(client, stop, hits[start : start + count])
            told = None
            if len(places) > imap_search.MAX_FOLDERS:
                told = f"Only {imap_search.MAX_FOLDERS} of {len(places)} folders were searched; name one with in:."
            return FoundMails(lines, make_token(start + count) if len(hits) > start + count else None, told)

        return await self.connection.run(search_folders)

    async def read(self, message_id: str) -> MailMessage:
        place = self._locate(message_id)

        def read_mail(client: ImapClient, stop: StopSign) -> MailMessage:
            select_message(client, place, readonly=True)
            return read_message(client, place, _folder_of(ImapFolders.load(client), place).label)

        return await self.connection.run(read_mail)

    async def list_arrivals(self, cursor: str | None, count: int) -> ArrivedMails:
        notice = await self._apply_filters()
        arrived = await self.connection.run(lambda client, stop: imap_search.list_since(client, cursor, count))
        return replace(arrived, notice=notice)

    async def attachment(self, message_id: str, attachment_id: str, max_bytes: int) -> AttachmentContent:
        place = self._locate(message_id)

        def read_attachment(client: ImapClient, stop: StopSign) -> AttachmentContent:
            select_message(client, place, readonly=True)
            data, size = load_raw(client, place)
            part = find_attachment(parse_mail(data).root, attachment_id)
            if part.size > max_bytes or size > len(data):
                raise TooLarge(
                    f"The attachment has more than the {max_bytes} bytes that are fetched.",
                    hint="MAIL_ATTACHMENT_MAX_BYTES sets the limit.",
                )
            return AttachmentContent(file_name(part), part.content_type, part.data or b"")

        return await self.connection.run(read_attachment)

    async def send(self, mail: EmailMessage, thread_id: str | None) -> SendOutcome:
        return await self._outbox.send(mail)

    async def trash(self, message_id: str) -> str:
        place = self._locate(message_id)

        def move_to_trash(client: ImapClient, stop: StopSign) -> ImapMessageId:
            select_message(client, place, readonly=False)
            goal = ImapFolders.load(client).ensure(client, TRASH)
            return place if goal.name == place.folder else move_message(client, place, goal.name)

        return self._remember_move(place, await self.connection.run(move_to_trash))

    async def relabel(self, message_id: str, add: tuple[str, ...], remove: tuple[str, ...]) -> tuple[str, list[str]]:
        place = self._locate(message_id)

        def change_labels(client: ImapClient, stop: StopSign) -> tuple[ImapMessageId, list[str]]:
            folders = ImapFolders.load(client)
            select_message(client, place, readonly=False)
            now = apply_label_change(
                client, place, plan_label_change(client, folders, _folder_of(folders, place), add, remove)
            )
            client.select_folder(now.folder, readonly=True)
            seen = read_message(client, now, _folder_of(folders, now).label).summary.labels
            # A mail in a second folder is an independent copy.
            copied = [label for label in add if label.casefold() not in {one.casefold() for one in seen}]
            return now, [*seen, *copied]

        now, labels = await self.connection.run(change_labels)
        return self._remember_move(place, now), labels

    async def drafts(self, count: int) -> list[MailDraft]:
        return await self.connection.run(lambda client, stop: imap_outbox.list_drafts(client, count))

    async def create_draft(self, mail: EmailMessage, thread_id: str | None) -> MailDraft:
        data, message_id = mail.as_bytes(), str(mail["Message-ID"])
        return await self.connection.run(lambda client, stop: imap_outbox.save_draft(client, message_id, data))

    async def replace_draft(self, draft_id: str, mail: EmailMessage) -> MailDraft:
        def rewrite_draft(client: ImapClient, stop: StopSign) -> MailDraft:
            place = imap_outbox.find_draft(client, draft_id)
            former = parse_mail(load_raw(client, place)[0]).headers
            keep_thread(mail, former)
            if former.message_id:
                mail.replace_header("Message-ID", former.message_id)
            kept = imap_outbox.save_draft(client, str(mail["Message-ID"]), mail.as_bytes())
            if not former.message_id:
                imap_outbox.remove_draft(client, draft_id)
            return kept

        return await self.connection.run(rewrite_draft)

    async def send_draft(self, draft_id: str) -> SendOutcome:
        return await self._outbox.send_draft(draft_id)

    async def delete_draft(self, draft_id: str) -> None:
        await self.connection.run(lambda client, stop: imap_outbox.remove_draft(client, draft_id))

    async def labels(self) -> list[MailLabel]:
        return await self.connection.run(lambda client, stop: ImapFolders.load(client).labels())

    async def create_label(self, name: str) -> MailLabel:
        return await self.connection.run(lambda client, stop: imap_folders.create_label(client, name))

    async def delete_label(self, label_id: str) -> MailLabel:
        return await self.connection.run(lambda client, stop: imap_folders.delete_label(client, label_id))

    async def filters(self) -> list[MailFilter]:
        return [kept.to_filter() for kept in self._filters.read().filters]

    async def filter(self, filter_id: str) -> MailFilter:
        return self._filters.read().find(filter_id).to_filter()

    async def create_filter(self, criteria: FilterCriteria, action: FilterAction) -> MailFilter:
        def check_labels(client: ImapClient, stop: StopSign) -> tuple[int, int]:
            folders = ImapFolders.load(client)
            folders.find_all([*(action.add_label_ids or []), *(action.remove_label_ids or [])], "action")
            status = client.folder_status("INBOX", ["UIDVALIDITY", "UIDNEXT"])
            return status.get(b"UIDVALIDITY", 0), status.get(b"UIDNEXT", 1)

        validity, ahead = await self.connection.run(check_labels)
        return await self._filters.add(criteria, action, validity, ahead)

    async def delete_filter(self, filter_id: str) -> None:
        await self._filters.remove(filter_id)

    async def close(self) -> None:
        await self.connection.close()

    async def _apply_filters(self) -> str | None:
        """Apply the filters to new mail. Their errors do not prevent reading it."""
        try:
            kept = self._filters.read()
            if not kept.filters:
                return None
            validity, ahead = await self.connection.run(lambda client, stop: apply_to_new_mail(client, stop, kept))
            if (validity, ahead) != (kept.validity, kept.next_uid):
                async with self._filters.edit() as account:
                    account.validity, account.next_uid = validity, ahead
        except AnnabelleError as error:
            return f"The filters were not applied: {error.message}"
        return None

    def _locate(self, message_id: str) -> ImapMessageId:
        place = parse_message_id(message_id)
        while place in self._moved:
            place = self._moved[place]
        return place

    def _remember_move(self, former: ImapMessageId, now: ImapMessageId) -> str:
        if now != former:
            self._moved.pop(now, None)  # moved back to where it was: avoid a cycle
            self._moved[former] = now
            while len(self._moved) > _REMEMBERED_MOVES:
                self._moved.popitem(last=False)
        return now.encode()


def _folder_of(folders: ImapFolders, place: ImapMessageId) -> ImapFolder:
    return folders.find(place.folder, "message_id")
