"""A mailbox anywhere, over IMAP and SMTP."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING

from annabelle.core.connections import MailAccount
from annabelle.core.errors import AnnabelleError, NotFound, TooLarge
from annabelle.servers.gmail.mail import imap_arrivals, imap_drafts, imap_labels, imap_search
from annabelle.servers.gmail.mail.imap_connection import ImapConnection
from annabelle.servers.gmail.mail.imap_folders import FLAGS, TRASH, Folder, Folders
from annabelle.servers.gmail.mail.imap_ids import Place, read_place
from annabelle.servers.gmail.mail.imap_messages import open_place, raw_message, read_message
from annabelle.servers.gmail.mail.imap_moving import carry_out, move, plan
from annabelle.servers.gmail.mail.imap_outbox import Outbox
from annabelle.servers.gmail.mail.local_filters import KeptAccount, LocalFilters, sort_new
from annabelle.servers.gmail.mail.models import (
    Arrived,
    AttachmentContent,
    Draft,
    Filter,
    FilterAction,
    FilterCriteria,
    Found,
    Label,
    Message,
    Sent,
)
from annabelle.servers.gmail.mail.outgoing import keep_thread
from annabelle.servers.gmail.mail.parsing import parse_mail
from annabelle.servers.gmail.mail.parts import file_name, is_file
from annabelle.servers.gmail.mail.query import parse_query
from annabelle.servers.gmail.reach import Reach
from annabelle.servers.kit import StopSign
from annabelle.servers.kit.paging import page_token as token_of
from annabelle.servers.kit.paging import read_token

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail.imap_client import ImapClient

_REMEMBERED_MOVES = 500


class ImapMailbox:
    """One connection for all calls; ids follow mails that were moved here while this process runs."""

    def __init__(self, account: MailAccount, state: Path, reach: Reach) -> None:
        self._account = account
        self.connection = ImapConnection(account, reach)
        self._filters = LocalFilters(state / "filters.json", account.address)
        self._moved: OrderedDict[Place, Place] = OrderedDict()
        self._outbox = Outbox(account, self.connection, reach)

    @property
    def address(self) -> str:
        return self._account.address

    @property
    def rejected(self) -> bool:
        return self.connection.rejected

    @property
    def filters_note(self) -> str | None:
        return "Annabelle applies this filter when new mail is asked for; the mail server knows nothing of it."

    async def find(self, query: str, labels: tuple[str, ...], count: int, page_token: str | None) -> Found:
        asked = parse_query(query)
        start = read_token(page_token)

        def work(client: ImapClient, stop: StopSign) -> Found:
            places, criteria = imap_search.chosen(Folders.read(client), asked, labels)
            hits = imap_search.search(client, stop, places, criteria, asked.attachment, start + count + 1)
            lines = imap_search.lines(client, stop, hits[start : start + count])
            told = None
            if len(places) > imap_search.MAX_FOLDERS:
                told = f"Only {imap_search.MAX_FOLDERS} of {len(places)} folders were searched; name one with in:."
            return Found(lines, token_of(start + count) if len(hits) > start + count else None, told)

        return await self.connection.run(work)

    async def read(self, message_id: str) -> Message:
        place = self._place(message_id)

        def work(client: ImapClient, stop: StopSign) -> Message:
            open_place(client, place, readonly=True)
            return read_message(client, place, _here(Folders.read(client), place).label)

        return await self.connection.run(work)

    async def arrived(self, cursor: str | None, count: int) -> Arrived:
        notice = await self._sort()
        arrived = await self.connection.run(lambda client, stop: imap_arrivals.since(client, cursor, count))
        return replace(arrived, notice=notice)

    async def attachment(self, message_id: str, attachment_id: str, max_bytes: int) -> AttachmentContent:
        place = self._place(message_id)

        def work(client: ImapClient, stop: StopSign) -> AttachmentContent:
            open_place(client, place, readonly=True)
            data, size = raw_message(client, place)
            parts = {part.id: part for part in parse_mail(data).root.walk() if is_file(part)}
            if attachment_id not in parts:
                raise NotFound(
                    "The mail has no such attachment.", hint="list_attachments shows them.", field="attachment_id"
                )
            part = parts[attachment_id]
            if part.size > max_bytes or size > len(data):
                raise TooLarge(
                    f"The attachment has more than the {max_bytes} bytes that are fetched.",
                    hint="MAIL_ATTACHMENT_MAX_BYTES sets the limit.",
                )
            return AttachmentContent(file_name(part), part.content_type, part.data or b"")

        return await self.connection.run(work)

    async def send(self, mail: EmailMessage, thread_id: str | None) -> Sent:
        return await self._outbox.send(mail)

    async def trash(self, message_id: str) -> str:
        place = self._place(message_id)

        def work(client: ImapClient, stop: StopSign) -> Place:
            open_place(client, place, readonly=False)
            goal = Folders.read(client).ensure(client, TRASH)
            return place if goal.name == place.folder else move(client, place, goal.name)

        return self._follow(place, await self.connection.run(work))

    async def relabel(self, message_id: str, add: tuple[str, ...], remove: tuple[str, ...]) -> tuple[str, list[str]]:
        place = self._place(message_id)

        def work(client: ImapClient, stop: StopSign) -> tuple[Place, list[str]]:
            folders = Folders.read(client)
            open_place(client, place, readonly=False)
            now = carry_out(client, place, plan(client, folders, _here(folders, place), add, remove))
            client.select_folder(now.folder, readonly=True)
            seen = read_message(client, now, _here(folders, now).label).summary.labels
            # What lies in a second folder is a copy, of which this one knows nothing.
            copied = [label for label in add if label.casefold() not in {one.casefold() for one in seen}]
            return now, [*seen, *copied]

        now, labels = await self.connection.run(work)
        return self._follow(place, now), labels

    async def drafts(self, count: int) -> list[Draft]:
        return await self.connection.run(lambda client, stop: imap_drafts.list_drafts(client, count))

    async def create_draft(self, mail: EmailMessage, thread_id: str | None) -> Draft:
        data, message_id = mail.as_bytes(), str(mail["Message-ID"])
        return await self.connection.run(lambda client, stop: imap_drafts.keep_draft(client, message_id, data))

    async def replace_draft(self, draft_id: str, mail: EmailMessage) -> Draft:
        def work(client: ImapClient, stop: StopSign) -> Draft:
            place = imap_drafts.find_draft(client, draft_id)
            former = parse_mail(raw_message(client, place)[0]).headers
            keep_thread(mail, former)
            if former.message_id:
                mail.replace_header("Message-ID", former.message_id)
            kept = imap_drafts.keep_draft(client, str(mail["Message-ID"]), mail.as_bytes())
            if not former.message_id:
                imap_drafts.drop_draft(client, draft_id)
            return kept

        return await self.connection.run(work)

    async def send_draft(self, draft_id: str) -> Sent:
        return await self._outbox.send_draft(draft_id)

    async def delete_draft(self, draft_id: str) -> None:
        await self.connection.run(lambda client, stop: imap_drafts.drop_draft(client, draft_id))

    async def labels(self) -> list[Label]:
        return await self.connection.run(lambda client, stop: Folders.read(client).labels())

    async def create_label(self, name: str) -> Label:
        return await self.connection.run(lambda client, stop: imap_labels.create(client, name))

    async def delete_label(self, label_id: str) -> Label:
        return await self.connection.run(lambda client, stop: imap_labels.delete(client, label_id))

    async def filters(self) -> list[Filter]:
        return [kept.shown() for kept in self._filters.read().filters]

    async def filter(self, filter_id: str) -> Filter:
        for kept in self._filters.read().filters:
            if kept.id == filter_id:
                return kept.shown()
        raise NotFound("There is no filter with this id.", hint="list_filters shows them.", field="filter_id")

    async def create_filter(self, criteria: FilterCriteria, action: FilterAction) -> Filter:
        def work(client: ImapClient, stop: StopSign) -> tuple[int, int]:
            folders = Folders.read(client)
            for label in (*action.add_label_ids, *action.remove_label_ids):
                if label.upper() not in FLAGS:
                    folders.find(label, "action")
            status = client.folder_status("INBOX", ["UIDVALIDITY", "UIDNEXT"])
            return status.get(b"UIDVALIDITY", 0), status.get(b"UIDNEXT", 1)

        validity, ahead = await self.connection.run(work)
        return await self._filters.add(criteria, action, validity, ahead)

    async def delete_filter(self, filter_id: str) -> None:
        await self._filters.remove(filter_id)

    async def close(self) -> None:
        await self.connection.close()

    async def _sort(self) -> str | None:
        """Apply the filters to new mail. What goes wrong with them does not keep the mail from being read."""
        try:
            kept = self._filters.read()
            if not kept.filters:
                return None
            validity, ahead = await self.connection.run(lambda client, stop: sort_new(client, stop, kept))
            if (validity, ahead) != (kept.validity, kept.next_uid):

                def note(account: KeptAccount) -> None:
                    account.validity, account.next_uid = validity, ahead

                await self._filters.change(note)
        except AnnabelleError as error:
            return f"The filters were not applied: {error.message}"
        return None

    def _place(self, message_id: str) -> Place:
        place = read_place(message_id)
        while place in self._moved:
            place = self._moved[place]
        return place

    def _follow(self, former: Place, now: Place) -> str:
        if now != former:
            self._moved.pop(now, None)  # it came back to where it was: no circle
            self._moved[former] = now
            while len(self._moved) > _REMEMBERED_MOVES:
                self._moved.popitem(last=False)
        return now.id()


def _here(folders: Folders, place: Place) -> Folder:
    return folders.find(place.folder, "message_id")
