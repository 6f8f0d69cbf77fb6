"""What came into the inbox of a plain mailbox since it was last looked at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from annabelle.servers.gmail.mail.imap_folders import INBOX, Folder
from annabelle.servers.gmail.mail.imap_messages import in_utc, summaries, validity_of
from annabelle.servers.gmail.mail.models import Arrived
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail import imap_client
    from annabelle.servers.gmail.mail.imap_client import ImapClient
else:
    imap_client = deferred_module("annabelle.servers.gmail.mail.imap_client")

FIRST_LOOK = timedelta(days=1)
_INBOX = Folder("INBOX", INBOX, special=True)


def since(client: ImapClient, cursor: str | None, count: int) -> Arrived:
    """Mails behind the cursor, oldest first; without one, or when the server has numbered anew, those of a day."""
    selected = client.select_folder("INBOX", readonly=True)
    validity = validity_of(selected)
    ahead = selected.get(b"UIDNEXT")
    known, _, number = (cursor or "").partition(".")
    if known == str(validity) and number.isdecimal():
        start = int(number)
        uids = sorted(uid for uid in client.search([b"UID", f"{start}:*".encode()]) if uid >= start)
    else:
        uids = _of_a_day(client)
    shown = uids[:count]
    behind = shown[-1] + 1 if shown else ahead if isinstance(ahead, int) else 1
    return Arrived(
        list(summaries(client, _INBOX, validity, shown).values()), f"{validity}.{behind}", len(uids) > len(shown)
    )


def _of_a_day(client: ImapClient) -> list[int]:
    begin = datetime.now(UTC) - FIRST_LOOK
    # The server counts whole days, in a zone of its own, so one more is asked for and the rest is done here.
    day = (begin - timedelta(days=1)).date()
    found = client.search(imap_client.wire(["SINCE", day]))
    dates = client.fetch(found, ["INTERNALDATE"])
    return sorted(
        uid
        for uid, fetched in dates.items()
        if isinstance(at := fetched.get(b"INTERNALDATE"), datetime) and in_utc(at) >= begin
    )
