"""Filters for IMAP mailboxes, stored in a file and applied when new mail is read."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import NotAllowed, NotFound, StorageTrouble, TooLarge
from annabelle.core.home import write_atomically
from annabelle.core.ids import new_id
from annabelle.servers.kit import StopSign
from annabelle.servers.mail_calendar.mail import imap_client
from annabelle.servers.mail_calendar.mail.imap_client import ImapClient
from annabelle.servers.mail_calendar.mail.imap_folders import INBOX, ImapFolder, ImapFolders
from annabelle.servers.mail_calendar.mail.imap_messages import (
    ImapMessageId,
    apply_label_change,
    get_validity,
    has_attachment,
    plan_label_change,
)
from annabelle.servers.mail_calendar.mail.mailbox import FilterAction, FilterCriteria, MailFilter
from annabelle.servers.mail_calendar.mail.search_query import Criteria, SearchText, parse_query

_log = logging.getLogger(__name__)
MAX_FILTERS = 200
_AT_ONCE = 500
"""New mails sorted in one run. The rest follow in the next."""


class StoredFilter(FilterCriteria):
    id: str
    add: list[str] = Field(default_factory=list[str])
    remove: list[str] = Field(default_factory=list[str])

    def to_filter(self) -> MailFilter:
        labels: dict[str, str | list[str]] = {"add_label_ids": self.add, "remove_label_ids": self.remove}
        action = {name: named for name, named in labels.items() if named}
        return MailFilter(id=self.id, criteria=self.to_fields(), action=action)


class StoredAccountFilters(BaseModel):
    """Filters of one mailbox, and the position up to which its inbox is sorted."""

    filters: list[StoredFilter] = Field(default_factory=list[StoredFilter])
    validity: int = 0
    next_uid: int = 0

    def find(self, filter_id: str) -> StoredFilter:
        for kept in self.filters:
            if kept.id == filter_id:
                return kept
        raise NotFound("There is no filter with this id.", hint="list_filters shows them.", field="filter_id")


class _FilterFile(BaseModel):
    accounts: dict[str, StoredAccountFilters] = Field(default_factory=dict[str, StoredAccountFilters])


class ImapFilterStore:
    """Filters of one mailbox, in a file shared by all mailboxes."""

    def __init__(self, file: Path, address: str) -> None:
        self._file, self._address = file, address
        self._changing = asyncio.Lock()

    def read(self) -> StoredAccountFilters:
        return self._load().accounts.get(self._address) or StoredAccountFilters()

    @contextlib.asynccontextmanager
    async def edit(self) -> AsyncGenerator[StoredAccountFilters]:
        """Yield the filters to be changed, and write them if nothing is raised."""
        async with self._changing:
            whole = self._load()
            yield whole.accounts.setdefault(self._address, StoredAccountFilters())
            try:
                write_atomically(self._file, whole.model_dump_json(indent=2))
            except OSError as error:
                raise StorageTrouble("The filters can not be kept: the disk refuses them.") from error

    async def add(self, criteria: FilterCriteria, action: FilterAction, validity: int, next_uid: int) -> MailFilter:
        """Store a filter for mail that arrives from now on."""
        if action.forward:
            raise NotAllowed(
                "Forwarding by a filter needs a Google account; in this mailbox filters only set labels.",
                hint="Leave out forward.",
            )
        add, remove = action.add_label_ids or [], action.remove_label_ids or []
        made = StoredFilter(**criteria.model_dump(), id=new_id("fl"), add=add, remove=remove)
        build_criteria(made)  # refuse an invalid query now, not when mail arrives
        async with self.edit() as account:
            if len(account.filters) >= MAX_FILTERS:
                raise TooLarge(f"There are {MAX_FILTERS} filters already.", hint="Delete one with delete_filter.")
            if not account.filters:
                account.validity, account.next_uid = validity, next_uid
            account.filters.append(made)
        return made.to_filter()

    async def remove(self, filter_id: str) -> None:
        async with self.edit() as account:
            account.filters.remove(account.find(filter_id))

    def _load(self) -> _FilterFile:
        try:
            return _FilterFile.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return _FilterFile()
        except (OSError, ValidationError) as error:
            raise StorageTrouble(
                "The file of the mail filters can not be read.", hint="Mend or remove data/mail/filters.json."
            ) from error


def build_criteria(kept: StoredFilter) -> tuple[Criteria, bool | None]:
    """Search criteria of a filter, and whether an attachment is required."""
    criteria: Criteria = []
    if kept.sender:
        criteria += ["FROM", SearchText(kept.sender)]
    if kept.to:
        criteria += ["OR", "TO", SearchText(kept.to), "CC", SearchText(kept.to)]
    if kept.subject:
        criteria += ["SUBJECT", SearchText(kept.subject)]
    if kept.size is not None:
        criteria += ["SMALLER" if kept.size_comparison == "smaller" else "LARGER", kept.size]
    attachment = kept.has_attachment
    if kept.query:
        query = parse_query(kept.query)
        criteria += query.criteria
        attachment = query.attachment if query.attachment is not None else attachment
    return criteria or ["ALL"], attachment


def apply_to_new_mail(client: ImapClient, stop: StopSign, kept: StoredAccountFilters) -> tuple[int, int]:
    """Apply the filters to new mail in the inbox. Returns the new position."""
    status = client.folder_status("INBOX", ["UIDVALIDITY", "UIDNEXT"])
    validity, ahead = status.get(b"UIDVALIDITY", 0), status.get(b"UIDNEXT", 1)
    start = kept.next_uid if kept.validity == validity else ahead
    if start >= ahead:
        return validity, ahead
    validity = get_validity(client.select_folder("INBOX"))
    new = sorted(uid for uid in client.search([b"UID", f"{start}:*".encode()]) if uid >= start)[:_AT_ONCE]
    if not new:
        return validity, ahead
    folders = ImapFolders.load(client)
    here = folders.special(INBOX) or ImapFolder("INBOX", INBOX, special=True)
    for uid, (add, remove) in _match_filters(client, kept, new).items():
        stop.check()
        known = [tuple(label for label in labels if _label_exists(folders, label)) for labels in (add, remove)]
        client.select_folder("INBOX")
        apply_label_change(
            client, ImapMessageId("INBOX", validity, uid), plan_label_change(client, folders, here, known[0], known[1])
        )
    return validity, new[-1] + 1


def _match_filters(
    client: ImapClient, kept: StoredAccountFilters, new: list[int]
) -> dict[int, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Combined label changes for each mail. A label that is both added and removed is added."""
    wanted: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for one in kept.filters:
        criteria, attachment = build_criteria(one)
        words = imap_client.encode_search([*criteria, "UID", f"{new[0]}:{new[-1]}"])
        found = client.search(words, None if all(word.isascii() for word in words) else "UTF-8")
        if attachment is not None and found:
            outlines = client.fetch(found, ["BODYSTRUCTURE"])
            found = [uid for uid in found if has_attachment(outlines.get(uid, {}).get(b"BODYSTRUCTURE")) is attachment]
        for uid in set(found) & set(new):
            add, remove = wanted.get(uid, ((), ()))
            wanted[uid] = ((*add, *one.add), (*remove, *one.remove))
    return {uid: (add, _subtract(remove, add)) for uid, (add, remove) in wanted.items()}


def _subtract(labels: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    taken = {label.lower() for label in others}
    return tuple(label for label in labels if label.lower() not in taken)


def _label_exists(folders: ImapFolders, label: str) -> bool:
    try:
        return label.upper() in ("UNREAD", "STARRED") or bool(folders.find(label))
    except NotFound:
        _log.warning("A filter names a label that is gone.")
        return False
