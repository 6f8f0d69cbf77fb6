"""Mails of a plain mailbox, from what the server sends of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from annabelle.core.errors import NotFound
from annabelle.servers.gmail.mail.imap_folders import Folder
from annabelle.servers.gmail.mail.imap_ids import Place, thread_of
from annabelle.servers.gmail.mail.models import Content, Headers, Message, MessageSummary
from annabelle.servers.gmail.mail.parsing import ParsedMail, parse_mail
from annabelle.servers.gmail.mail.parts import content_of
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail import imap_client
    from annabelle.servers.gmail.mail.imap_client import ImapClient
else:
    imap_client = deferred_module("annabelle.servers.gmail.mail.imap_client")

_BEGINNING = 24_000
_SNIPPET = 160
WHOLE_BYTES = 60_000_000
"""Up to here a mail is read as a whole; of a larger one only the beginning."""
_LARGE_BEGINNING = 4_000_000

Fetched = Mapping[bytes, object]


def gone() -> NotFound:
    return NotFound(
        "The mail is no longer there; it was moved or deleted.", hint="List again and use an id from there."
    )


def open_place(client: ImapClient, place: Place, *, readonly: bool) -> None:
    """Select the folder of a mail; NotFound when the folder is gone, numbered anew, or without the mail."""
    if not folder_exists(client, place.folder):
        raise gone()
    if validity_of(client.select_folder(place.folder, readonly=readonly)) != place.validity:
        raise gone()
    if place.uid not in client.fetch([place.uid], ["UID"]):
        raise gone()


def folder_exists(client: ImapClient, name: str) -> bool:
    return any(
        name == known or name.upper() == known.upper() == "INBOX" for _, _, known in imap_client.list_folders(client)
    )


def validity_of(selected: Mapping[bytes, object]) -> int:
    value = selected.get(b"UIDVALIDITY")
    return value if isinstance(value, int) else 0


def summaries(client: ImapClient, folder: Folder, validity: int, uids: Sequence[int]) -> dict[int, MessageSummary]:
    """Lines for mails of the selected folder, in the order asked for; what vanished meanwhile is left out."""
    fetched = client.fetch(uids, ["FLAGS", "INTERNALDATE", "BODYSTRUCTURE", f"BODY.PEEK[]<0.{_BEGINNING}>"])
    found: dict[int, MessageSummary] = {}
    for uid in uids:
        if uid in fetched:
            parsed = parse_mail(_bytes(fetched[uid], b"BODY[]<0>"))
            found[uid] = summary_of(Place(folder.name, validity, uid), folder.label, fetched[uid], parsed)
    return found


def read_message(client: ImapClient, place: Place, label: str) -> Message:
    """A whole mail of the selected folder, without marking it as read."""
    data, size = raw_message(client, place)
    fetched = client.fetch([place.uid], ["FLAGS", "INTERNALDATE", "BODYSTRUCTURE"])
    if place.uid not in fetched:
        raise gone()
    parsed = parse_mail(data)
    notice = f"The mail has {size} bytes; only its beginning was read." if size > len(data) else None
    content = content_of(parsed.root)
    return Message(summary_of(place, label, fetched[place.uid], parsed, content), parsed.headers, content, notice)


def raw_message(client: ImapClient, place: Place) -> tuple[bytes, int]:
    """The bytes of a mail and its size; of a huge one only the beginning."""
    sizes = client.fetch([place.uid], ["RFC822.SIZE"])
    if place.uid not in sizes:
        raise gone()
    size = cast("int", sizes[place.uid].get(b"RFC822.SIZE", 0))
    if size > WHOLE_BYTES:
        fetched = client.fetch([place.uid], [f"BODY.PEEK[]<0.{_LARGE_BEGINNING}>"])
        return _bytes(fetched.get(place.uid, {}), b"BODY[]<0>"), size
    fetched = client.fetch([place.uid], ["BODY.PEEK[]"])
    if place.uid not in fetched:
        raise gone()
    data = _bytes(fetched[place.uid], b"BODY[]")
    return data, len(data)


def summary_of(
    place: Place, label: str, fetched: Fetched, parsed: ParsedMail, content: Content | None = None
) -> MessageSummary:
    flags = {flag.lower() for flag in cast("tuple[bytes, ...]", fetched.get(b"FLAGS", ()))}
    arrived = fetched.get(b"INTERNALDATE")
    headers: Headers = parsed.headers
    return MessageSummary(
        id=place.id(),
        thread_id=thread_of(headers.message_id, headers.references, place),
        sender=headers.sender,
        to=headers.to,
        subject=headers.subject,
        date=headers.date or (in_utc(arrived) if isinstance(arrived, datetime) else None),
        snippet=snippet_of((content or content_of(parsed.root)).text),
        labels=(
            label,
            *(["UNREAD"] if b"\\seen" not in flags else []),
            *(["STARRED"] if b"\\flagged" in flags else []),
        ),
        has_attachments=has_file(fetched.get(b"BODYSTRUCTURE")),
        cc=headers.cc,
        reply_to=headers.reply_to,
    )


def snippet_of(text: str) -> str:
    flat = " ".join(text[: _SNIPPET * 20].split())
    return flat if len(flat) <= _SNIPPET else f"{flat[: _SNIPPET - 1]}…"


def has_file(structure: object) -> bool:
    """Whether the server's outline of a mail has a part that is a file."""
    if not isinstance(structure, tuple) or not structure:
        return False
    node = cast("tuple[object, ...]", structure)
    if isinstance(node[0], list):
        return any(has_file(part) for part in cast("list[object]", node[0]))
    kind = [part.lower() if isinstance(part, bytes) else b"" for part in node[:2]]
    if kind[0] == b"text" and kind[1:] in ([b"plain"], [b"html"]):
        return any(_is_attachment(part) for part in node[2:])
    return True


def in_utc(at: datetime) -> datetime:
    """The library gives times without a zone, in this machine's."""
    return at.astimezone(UTC)


def _is_attachment(part: object) -> bool:
    if not isinstance(part, tuple):
        return False
    first = cast("tuple[object, ...]", part)[:1]
    return bool(first) and isinstance(first[0], bytes) and first[0].lower() == b"attachment"


def _bytes(fetched: Fetched, key: bytes) -> bytes:
    value = fetched.get(key)
    return value if isinstance(value, bytes) else b""
