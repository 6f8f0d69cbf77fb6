"""IMAP folders as labels: the special ones by their use, and the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from annabelle.core.errors import Conflict, InvalidArguments, NotAllowed, NotFound
from annabelle.servers.mail_calendar.mail import imap_client
from annabelle.servers.mail_calendar.mail.imap_client import ImapClient
from annabelle.servers.mail_calendar.mail.mailbox import MailLabel

INBOX, SENT, DRAFT, TRASH, SPAM, ARCHIVE, ALL = "INBOX", "SENT", "DRAFT", "TRASH", "SPAM", "ARCHIVE", "ALL"
FLAGS = {"UNREAD": b"\\Seen", "STARRED": b"\\Flagged"}
"""Labels that are flags, not folders. UNREAD is the absence of its flag."""

_USES = {
    b"\\sent": SENT, b"\\drafts": DRAFT, b"\\trash": TRASH, b"\\junk": SPAM, b"\\archive": ARCHIVE, b"\\all": ALL,
}  # fmt: skip
_NAMES = {
    SENT: ("sent", "sent mail", "sent items", "sent messages"),
    DRAFT: ("drafts", "draft"),
    TRASH: ("trash", "deleted items", "deleted messages", "bin"),
    SPAM: ("junk", "spam", "junk e-mail", "bulk mail"),
    ARCHIVE: ("archive", "archives"),
}
_MADE = {SENT: "Sent", DRAFT: "Drafts", TRASH: "Trash", SPAM: "Junk", ARCHIVE: "Archive"}
_SPOKEN = {"DRAFTS": DRAFT, "JUNK": SPAM, "BIN": TRASH}


@dataclass(frozen=True, slots=True)
class ImapFolder:
    """`name` is the server's name, `label` the one the tools show."""

    name: str
    label: str
    special: bool
    can_hold: bool = True

    def to_label(self) -> MailLabel:
        return MailLabel(id=self.label, name=self.label, kind="system" if self.special else "user")


class ImapFolders:
    def __init__(self, folders: Iterable[ImapFolder], delimiter: str) -> None:
        self.all = list(folders)
        self.delimiter = delimiter

    @classmethod
    def load(cls, client: ImapClient) -> ImapFolders:
        listed = imap_client.list_folders(client)
        delimiter = listed[0][1] if listed else "/"
        uses: dict[str, str] = {"INBOX": INBOX}
        for flags, _, name in listed:
            for flag in flags & _USES.keys():
                if _USES[flag] not in uses.values():
                    uses[name] = _USES[flag]
        for label, names in _NAMES.items():
            if label not in uses.values():
                match = next((name for _, between, name in listed if _last_part(name, between) in names), None)
                if match is not None and match not in uses:
                    uses[match] = label
        folders = [
            ImapFolder(
                name=name,
                label=INBOX if name.upper() == "INBOX" else uses.get(name) or name.replace(between, "/"),
                special=name in uses or name.upper() == "INBOX",
                can_hold=not flags & {b"\\noselect", b"\\nonexistent"},
            )
            for flags, between, name in listed
        ]
        return cls(folders, delimiter)

    def special(self, label: str) -> ImapFolder | None:
        return next((folder for folder in self.all if folder.label == label and folder.special), None)

    def find(self, label: str, field: str = "label_ids") -> ImapFolder:
        """Find a folder by id or name, ignoring case."""
        wanted = _SPOKEN.get(label.upper(), label).lower()
        for folder in self.all:
            if wanted in (folder.label.lower(), folder.name.lower()) and folder.can_hold:
                return folder
        raise NotFound(
            f"There is no label {label[:100]!r}.", hint="list_labels shows them, create_label makes one.", field=field
        )

    def find_all(self, labels: Iterable[str], field: str) -> list[ImapFolder]:
        """Folders of those labels that are not flags."""
        return [self.find(label, field) for label in labels if label.upper() not in FLAGS]

    def ensure(self, client: ImapClient, label: str) -> ImapFolder:
        """Folder of a special use, created if there is none."""
        found = self.special(label)
        if found is None:
            name = self.server_name(_MADE[label])
            client.create_folder(name)
            client.subscribe_folder(name)
            found = ImapFolder(name, label, special=True)
            self.all.append(found)
        return found

    def default_search_folders(self) -> list[ImapFolder]:
        everything = self.special(ALL)
        if everything is not None:
            return [everything]
        return [one for one in self.all if one.can_hold and one.label not in (TRASH, SPAM, DRAFT)]

    def labels(self) -> list[MailLabel]:
        flags = [MailLabel(id=name, name=name, kind="system") for name in FLAGS]
        return [*(one.to_label() for one in self.all if one.can_hold), *flags]

    def server_name(self, label: str) -> str:
        """Server's name for a folder, below INBOX if all folders are there."""
        name = label.replace("/", self.delimiter)
        inside = f"INBOX{self.delimiter}"
        others = [one.name for one in self.all if one.name.upper() != "INBOX"]
        return f"{inside}{name}" if others and all(one.startswith(inside) for one in others) else name

    def check_name(self, name: str) -> None:
        parts = name.split("/")
        if self.delimiter != "/" and self.delimiter in name:
            raise InvalidArguments(
                f"A label's name may not have {self.delimiter!r} in it here.",
                hint="/ makes a label inside another.",
                field="name",
            )
        if any(not part.strip() or part.strip() != part for part in parts) or set(name) & set('%*"\\[]'):
            raise InvalidArguments(
                "This can not be the name of a label.", hint='Leave out % * " \\ [ ] and empty parts.', field="name"
            )
        if name.upper() in FLAGS:
            raise InvalidArguments(f"{name} is a mark that mails have, not a place.", field="name")


def _last_part(name: str, delimiter: str) -> str:
    return name.rsplit(delimiter, 1)[-1].lower()


def create_label(client: ImapClient, name: str) -> MailLabel:
    folders = ImapFolders.load(client)
    folders.check_name(name)
    made = folders.server_name(name)
    if any(wanted.lower() in (one.name.lower(), one.label.lower()) for one in folders.all for wanted in (made, name)):
        raise Conflict(f"There is a label {name} already.", field="name")
    client.create_folder(made)
    client.subscribe_folder(made)
    return MailLabel(id=ImapFolders.load(client).find(made).label, name=name, kind="user")


def delete_label(client: ImapClient, label_id: str) -> MailLabel:
    """Delete a folder after moving its mails to the archive."""
    folders = ImapFolders.load(client)
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
    return folder.to_label()
