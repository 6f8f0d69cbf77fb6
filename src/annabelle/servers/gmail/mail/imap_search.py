"""Looking for mails in the folders of a plain mailbox."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.mail.imap_folders import FLAGS, Folder, Folders
from annabelle.servers.gmail.mail.imap_messages import has_file, in_utc, summaries, validity_of
from annabelle.servers.gmail.mail.models import MessageSummary
from annabelle.servers.gmail.mail.query import Criteria, Query
from annabelle.servers.kit import StopSign, deferred_module

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail import imap_client
    from annabelle.servers.gmail.mail.imap_client import ImapClient
else:
    imap_client = deferred_module("annabelle.servers.gmail.mail.imap_client")

MAX_FOLDERS = 60
_OUTLINES = 100
_MAX_OUTLINES = 3_000
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Hit:
    at: datetime
    folder: Folder
    validity: int
    uid: int


def chosen(folders: Folders, query: Query, labels: tuple[str, ...]) -> tuple[list[Folder], Criteria]:
    """Where to look and for what: labels are folders or marks here."""
    criteria = list(query.criteria)
    names: list[tuple[str, str]] = [(name, "query") for name in query.folders]
    for label in labels:
        mark = FLAGS.get(label.upper())
        if mark is None:
            names.append((label, "label_ids"))
        else:
            criteria.append("UNSEEN" if label.upper() == "UNREAD" else "FLAGGED")
    places = list(dict.fromkeys(folders.find(name, field) for name, field in names))
    if len(places) > 1:
        raise InvalidArguments(
            "A mail is in one folder of this mailbox; two at once find nothing.",
            hint="Search one folder at a time.",
            field=names[-1][1],
        )
    if query.anywhere and not places:
        return [one for one in folders.all if one.can_hold], criteria
    return places or folders.searched(), criteria


def search(
    client: ImapClient, stop: StopSign, places: list[Folder], criteria: Criteria, attachment: bool | None, wanted: int
) -> list[Hit]:
    """The newest `wanted` mails of all these folders together."""
    hits: list[Hit] = []
    words = imap_client.wire(criteria)
    charset = None if all(word.isascii() for word in words) else "UTF-8"
    for folder in places[:MAX_FOLDERS]:
        stop.check()
        validity = validity_of(client.select_folder(folder.name, readonly=True))
        uids = sorted(client.search(words, charset), reverse=True)
        if attachment is not None:
            uids = _with_files(client, stop, uids, attachment, wanted)
        dates = client.fetch(uids[:wanted], ["INTERNALDATE"])
        for uid, fetched in dates.items():
            at = fetched.get(b"INTERNALDATE")
            hits.append(Hit(in_utc(at) if isinstance(at, datetime) else _LONG_AGO, folder, validity, uid))
    hits.sort(key=lambda hit: (hit.at, hit.uid), reverse=True)
    return hits[:wanted]


def lines(client: ImapClient, stop: StopSign, hits: list[Hit]) -> list[MessageSummary]:
    """The hits as lines of a list, in their order."""
    made: dict[tuple[str, int], MessageSummary] = {}
    for folder in dict.fromkeys(hit.folder for hit in hits):
        stop.check()
        validity = validity_of(client.select_folder(folder.name, readonly=True))
        uids = [hit.uid for hit in hits if hit.folder == folder]
        for uid, line in summaries(client, folder, validity, uids).items():
            made[folder.name, uid] = line
    return [made[hit.folder.name, hit.uid] for hit in hits if (hit.folder.name, hit.uid) in made]


def _with_files(client: ImapClient, stop: StopSign, uids: list[int], attachment: bool, wanted: int) -> list[int]:
    """No IMAP server can be asked for attachments, so the outlines of the newest mails are looked at."""
    found: list[int] = []
    for start in range(0, min(len(uids), _MAX_OUTLINES), _OUTLINES):
        stop.check()
        some = uids[start : start + _OUTLINES]
        outlines = client.fetch(some, ["BODYSTRUCTURE"])
        found += [uid for uid in some if has_file(outlines.get(uid, {}).get(b"BODYSTRUCTURE")) is attachment]
        if len(found) >= wanted:
            break
    return found
