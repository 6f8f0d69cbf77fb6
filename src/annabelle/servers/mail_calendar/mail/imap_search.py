"""Searches IMAP folders, and finds newly arrived mail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import StopSign
from annabelle.servers.mail_calendar.mail import imap_client
from annabelle.servers.mail_calendar.mail.imap_client import ImapClient
from annabelle.servers.mail_calendar.mail.imap_folders import FLAGS, INBOX, ImapFolder, ImapFolders
from annabelle.servers.mail_calendar.mail.imap_messages import get_validity, has_attachment, load_summaries, to_utc
from annabelle.servers.mail_calendar.mail.mailbox import ArrivedMails, MessageSummary
from annabelle.servers.mail_calendar.mail.search_query import Criteria, MailQuery

MAX_FOLDERS = 60
_OUTLINES = 100
_MAX_OUTLINES = 3_000
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ImapHit:
    at: datetime
    folder: ImapFolder
    uid: int


def plan_search(folders: ImapFolders, query: MailQuery, labels: tuple[str, ...]) -> tuple[list[ImapFolder], Criteria]:
    """Folders and criteria of a search. Labels are folders or flags here."""
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
    return places or folders.default_search_folders(), criteria


def search_folders(
    client: ImapClient,
    stop: StopSign,
    places: list[ImapFolder],
    criteria: Criteria,
    attachment: bool | None,
    wanted: int,
) -> list[ImapHit]:
    """The newest `wanted` mails of all these folders."""
    hits: list[ImapHit] = []
    words = imap_client.encode_search(criteria)
    charset = None if all(word.isascii() for word in words) else "UTF-8"
    for folder in places[:MAX_FOLDERS]:
        stop.check()
        client.select_folder(folder.name, readonly=True)
        uids = sorted(client.search(words, charset), reverse=True)
        if attachment is not None:
            uids = _filter_by_attachment(client, stop, uids, attachment, wanted)
        dates = client.fetch(uids[:wanted], ["INTERNALDATE"])
        for uid, fetched in dates.items():
            at = fetched.get(b"INTERNALDATE")
            hits.append(ImapHit(to_utc(at) if isinstance(at, datetime) else _LONG_AGO, folder, uid))
    hits.sort(key=lambda hit: (hit.at, hit.uid), reverse=True)
    return hits[:wanted]


def load_hits(client: ImapClient, stop: StopSign, hits: list[ImapHit]) -> list[MessageSummary]:
    made: dict[tuple[str, int], MessageSummary] = {}
    for folder in dict.fromkeys(hit.folder for hit in hits):
        stop.check()
        validity = get_validity(client.select_folder(folder.name, readonly=True))
        uids = [hit.uid for hit in hits if hit.folder == folder]
        for uid, line in load_summaries(client, folder, validity, uids).items():
            made[folder.name, uid] = line
    return [made[hit.folder.name, hit.uid] for hit in hits if (hit.folder.name, hit.uid) in made]


def _filter_by_attachment(
    client: ImapClient, stop: StopSign, uids: list[int], attachment: bool, wanted: int
) -> list[int]:
    """Check the structure of the newest mails, because IMAP cannot search for attachments."""
    found: list[int] = []
    for start in range(0, min(len(uids), _MAX_OUTLINES), _OUTLINES):
        stop.check()
        some = uids[start : start + _OUTLINES]
        outlines = client.fetch(some, ["BODYSTRUCTURE"])
        found += [uid for uid in some if has_attachment(outlines.get(uid, {}).get(b"BODYSTRUCTURE")) is attachment]
        if len(found) >= wanted:
            break
    return found


FIRST_LOOK = timedelta(days=1)
_INBOX = ImapFolder("INBOX", INBOX, special=True)


def list_since(client: ImapClient, cursor: str | None, count: int) -> ArrivedMails:
    """Mails after the cursor, oldest first. Without a cursor, or after a renumbering, those of the last day."""
    selected = client.select_folder("INBOX", readonly=True)
    validity = get_validity(selected)
    ahead = selected.get(b"UIDNEXT")
    known, _, number = (cursor or "").partition(".")
    if known == str(validity) and number.isdecimal():
        start = int(number)
        uids = sorted(uid for uid in client.search([b"UID", f"{start}:*".encode()]) if uid >= start)
    else:
        uids = _find_last_day(client)
    shown = uids[:count]
    behind = shown[-1] + 1 if shown else ahead if isinstance(ahead, int) else 1
    return ArrivedMails(
        list(load_summaries(client, _INBOX, validity, shown).values()), f"{validity}.{behind}", len(uids) > len(shown)
    )


def _find_last_day(client: ImapClient) -> list[int]:
    begin = datetime.now(UTC) - FIRST_LOOK
    # The server searches by whole days in its own zone, so request one more day and filter here.
    day = (begin - timedelta(days=1)).date()
    found = client.search(imap_client.encode_search(["SINCE", day]))
    dates = client.fetch(found, ["INTERNALDATE"])
    return sorted(
        uid
        for uid, fetched in dates.items()
        if isinstance(at := fetched.get(b"INTERNALDATE"), datetime) and to_utc(at) >= begin
    )
