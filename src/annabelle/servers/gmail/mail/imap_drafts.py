"""Drafts of a plain mailbox: mails in the folder for drafts. Rewriting one puts a new mail there and takes the old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annabelle.core.errors import NotFound, TooLarge
from annabelle.servers.gmail.mail.imap_folders import DRAFT, Folders
from annabelle.servers.gmail.mail.imap_ids import Place, draft_id, read_draft_id
from annabelle.servers.gmail.mail.imap_messages import raw_message, snippet_of, summaries, validity_of
from annabelle.servers.gmail.mail.imap_moving import header_id, remove, with_message_id
from annabelle.servers.gmail.mail.models import Draft
from annabelle.servers.gmail.mail.parsing import parse_mail
from annabelle.servers.gmail.mail.parts import content_of

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail.imap_client import ImapClient


def list_drafts(client: ImapClient, count: int) -> list[Draft]:
    folder = Folders.read(client).special(DRAFT)
    if folder is None:
        return []
    validity = validity_of(client.select_folder(folder.name, readonly=True))
    uids = sorted(client.search([b"UNDELETED"]), reverse=True)[:count]
    return [
        Draft(
            id=draft_id(header_id(client, uid), Place(folder.name, validity, uid)),
            message_id=line.id,
            to=line.to,
            subject=line.subject,
            snippet=line.snippet,
            date=line.date,
        )
        for uid, line in summaries(client, folder, validity, uids).items()
    ]


def keep_draft(client: ImapClient, message_id: str, data: bytes) -> Draft:
    """Put a draft there, or in the place of one with the same Message-ID."""
    folder = Folders.read(client).ensure(client, DRAFT)
    client.select_folder(folder.name)
    old = with_message_id(client, message_id)
    client.append(folder.name, data, [b"\\Draft", b"\\Seen"])
    validity = validity_of(client.select_folder(folder.name))
    now = with_message_id(client, message_id)
    former = [uid for uid in old if uid in now and uid != max(now)]
    if former:
        remove(client, former)
    place = Place(folder.name, validity, max(now, default=0))
    parsed = parse_mail(data)
    return Draft(
        id=draft_id(message_id, place),
        message_id=place.id(),
        to=parsed.headers.to,
        subject=parsed.headers.subject,
        snippet=snippet_of(content_of(parsed.root).text),
        date=parsed.headers.date,
    )


def find_draft(client: ImapClient, given: str) -> Place:
    """Where a draft is; its folder is selected afterwards."""
    wanted = read_draft_id(given)
    folder = Folders.read(client).special(DRAFT)
    if folder is not None:
        validity = validity_of(client.select_folder(folder.name))
        if isinstance(wanted, Place):
            known = wanted.folder == folder.name and wanted.validity == validity
            uids = [wanted.uid] if known else []
        else:
            uids = with_message_id(client, wanted)
        # One that is marked as deleted is still there, but nobody's draft any more.
        standing = set(client.search([b"UNDELETED"])) & set(uids)
        if standing:
            return Place(folder.name, validity, max(standing))
    raise NotFound("There is no such draft any more.", hint="list_drafts shows them.", field="draft_id")


def draft_bytes(client: ImapClient, given: str) -> bytes:
    """All of a draft. A piece of it must not go out in its name."""
    data, size = raw_message(client, find_draft(client, given))
    if size > len(data):
        raise TooLarge(f"The draft has {size} bytes, which is too large to be sent from here.", field="draft_id")
    return data


def drop_draft(client: ImapClient, given: str) -> None:
    """Take a draft away, with what an interrupted rewriting may have left of it."""
    place = find_draft(client, given)
    wanted = read_draft_id(given)
    remove(client, with_message_id(client, wanted) if isinstance(wanted, str) else [place.uid])
