"""Putting mails of a plain mailbox elsewhere, and marking them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.mail.header_text import message_ids
from annabelle.servers.gmail.mail.imap_folders import ARCHIVE, FLAGS, Folder, Folders
from annabelle.servers.gmail.mail.imap_ids import Place
from annabelle.servers.gmail.mail.imap_messages import validity_of
from annabelle.servers.gmail.mail.query import Criteria, Text
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail import imap_client
    from annabelle.servers.gmail.mail.imap_client import ImapClient
else:
    imap_client = deferred_module("annabelle.servers.gmail.mail.imap_client")


@dataclass(frozen=True, slots=True)
class Change:
    """What a change of labels comes to in a mailbox where a mail is in one folder."""

    set_flags: tuple[bytes, ...]
    clear_flags: tuple[bytes, ...]
    copy_to: tuple[Folder, ...]
    move_to: Folder | None


def plan(client: ImapClient, folders: Folders, here: Folder, add: tuple[str, ...], remove: tuple[str, ...]) -> Change:
    """A label more is a copy there; a label instead of the folder it is in is a move; without any, it is archived."""
    setting: list[bytes] = []
    clearing: list[bytes] = []
    for label, adding in [*((one, True) for one in add), *((one, False) for one in remove)]:
        mark = FLAGS.get(label.upper())
        if mark is not None:
            (setting if adding != (label.upper() == "UNREAD") else clearing).append(mark)
    targets = [folders.find(one, "add_label_ids") for one in add if one.upper() not in FLAGS]
    leaving = [folders.find(one, "remove_label_ids") for one in remove if one.upper() not in FLAGS]
    targets = [folder for folder in dict.fromkeys(targets) if folder.name != here.name]
    if any(folder in leaving for folder in targets):
        raise InvalidArguments("The same label can not be added and removed.", field="remove_label_ids")
    if not any(folder.name == here.name for folder in leaving):
        return Change(tuple(setting), tuple(clearing), tuple(targets), None)
    goal = targets[0] if targets else folders.ensure(client, ARCHIVE)
    return Change(tuple(setting), tuple(clearing), tuple(targets[1:]), goal if goal.name != here.name else None)


def carry_out(client: ImapClient, place: Place, change: Change) -> Place:
    """Do it to a mail of the selected folder; where it is afterwards."""
    if change.set_flags:
        client.add_flags([place.uid], change.set_flags)
    if change.clear_flags:
        client.remove_flags([place.uid], change.clear_flags)
    for folder in change.copy_to:
        _copy_once(client, place, folder.name)
    return move(client, place, change.move_to.name) if change.move_to is not None else place


def move(client: ImapClient, place: Place, target: str) -> Place:
    """Move a mail of the selected folder; the place it has there."""
    message_id = header_id(client, place.uid)
    before = client.folder_status(target, ["UIDNEXT"]).get(b"UIDNEXT", 1)
    if client.has_capability("MOVE"):
        client.move([place.uid], target)
    else:
        client.copy([place.uid], target)
        remove(client, [place.uid])
    validity = validity_of(client.select_folder(target))
    added = [uid for uid in _search_new(client, before, message_id) if uid >= before]
    return Place(target, validity, max(added, default=before))


def remove(client: ImapClient, uids: list[int]) -> None:
    """Take mails of the selected folder away for good. A server that can not do so for single mails gets them marked:
    its own command would take everything that others have marked."""
    client.add_flags(uids, [b"\\Deleted"])
    if client.has_capability("UIDPLUS"):
        client.uid_expunge(uids)


def header_id(client: ImapClient, uid: int) -> str:
    """The Message-ID of a mail of the selected folder, empty if it has none."""
    fetched = client.fetch([uid], ["BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"]).get(uid, {})
    raw = next((value for value in fetched.values() if isinstance(value, bytes)), b"")
    return next(iter(message_ids(raw.decode("utf-8", "replace"))), "")


def with_message_id(client: ImapClient, message_id: str) -> list[int]:
    """The mails of the selected folder that have this Message-ID."""
    criteria: Criteria = ["HEADER", "Message-ID", Text(message_id.strip("<>"))]
    found = client.search(imap_client.wire(criteria))
    return sorted(uid for uid in found if header_id(client, uid) == message_id)


def _copy_once(client: ImapClient, place: Place, target: str) -> None:
    """Unless a copy is there already: a call that is repeated must not fill the folder."""
    message_id = header_id(client, place.uid)
    if message_id:
        client.select_folder(target, readonly=True)
        there = with_message_id(client, message_id)
        client.select_folder(place.folder)
        if there:
            return
    client.copy([place.uid], target)


def _search_new(client: ImapClient, start: int, message_id: str) -> list[int]:
    criteria: Criteria = ["UID", f"{start}:*"]
    if message_id:
        criteria += ["HEADER", "Message-ID", Text(message_id.strip("<>"))]
    return client.search(imap_client.wire(criteria))
