"""Labels of a plain mailbox: folders of the person's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annabelle.core.errors import Conflict, NotAllowed
from annabelle.servers.gmail.mail.imap_folders import ARCHIVE, FLAGS, Folders
from annabelle.servers.gmail.mail.models import Label

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail.imap_client import ImapClient


def create(client: ImapClient, name: str) -> Label:
    folders = Folders.read(client)
    folders.check_name(name)
    made = folders.own_name(name)
    if any(wanted.lower() in (one.name.lower(), one.label.lower()) for one in folders.all for wanted in (made, name)):
        raise Conflict(f"There is a label {name} already.", field="name")
    client.create_folder(made)
    client.subscribe_folder(made)
    return Label(Folders.read(client).find(made).label, name, "user")


def delete(client: ImapClient, label_id: str) -> Label:
    """Its mails are not lost: they go to the archive before the folder goes."""
    folders = Folders.read(client)
    if label_id.upper() in FLAGS or folders.find(label_id, "label_id").special:
        raise NotAllowed(f"{label_id} belongs to the mailbox and can not be deleted.", field="label_id")
    folder = folders.find(label_id, "label_id")
    client.select_folder(folder.name)
    uids = client.search([b"ALL"])
    if uids:
        goal = folders.ensure(client, ARCHIVE)
        if client.has_capability("MOVE"):
            client.move(uids, goal.name)
        else:
            client.copy(uids, goal.name)
    client.select_folder("INBOX", readonly=True)
    client.delete_folder(folder.name)
    return Label(folder.label, folder.label, "user")
