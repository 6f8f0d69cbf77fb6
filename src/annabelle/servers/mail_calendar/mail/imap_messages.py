"""Mails in an IMAP mailbox: ids, reading, moving and flags."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.servers.mail_calendar.mail import imap_client
from annabelle.servers.mail_calendar.mail.headers import find_message_ids
from annabelle.servers.mail_calendar.mail.imap_client import ImapClient
from annabelle.servers.mail_calendar.mail.imap_folders import ARCHIVE, FLAGS, ImapFolder, ImapFolders
from annabelle.servers.mail_calendar.mail.mailbox import MailBody, MailMessage, MessageSummary
from annabelle.servers.mail_calendar.mail.message_parser import ParsedMail, extract_body, parse_mail
from annabelle.servers.mail_calendar.mail.search_query import Criteria, SearchText


@dataclass(frozen=True, slots=True)
class ImapMessageId:
    """Location of a mail. `validity` changes when the server renumbers a folder."""

    folder: str
    validity: int
    uid: int

    def encode(self) -> str:
        return _encode_id(f"{self.validity}.{self.uid}.{self.folder}")


def parse_message_id(message_id: str, field: str = "message_id") -> ImapMessageId:
    """Parse an id. Raises InvalidArguments if its form is unknown."""
    validity, _, rest = _decode_id(message_id).partition(".")
    uid, _, folder = rest.partition(".")
    if validity.isdecimal() and uid.isdecimal() and folder and len(validity) < 12 and len(uid) < 12:
        return ImapMessageId(folder, int(validity), int(uid))
    raise InvalidArguments("This is not the id of a mail in this mailbox.", hint="list_emails gives ids.", field=field)


def make_draft_id(message_id: str, place: ImapMessageId) -> str:
    """Use the Message-ID if there is one, because rewriting changes a draft's number."""
    return _encode_id(f"draft:{message_id}") if message_id else place.encode()


def parse_draft_id(given: str) -> str | ImapMessageId:
    kind, _, message_id = _decode_id(given).partition(":")
    if kind == "draft" and message_id:
        return message_id
    return parse_message_id(given, "draft_id")


def thread_id_of(message_id: str, references: tuple[str, ...], place: ImapMessageId) -> str:
    root = references[0] if references else message_id or place.encode()
    return hashlib.sha256(root.encode("utf-8", "replace")).hexdigest()[:16]


def _encode_id(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _decode_id(given: str) -> str:
    try:
        padded = given.encode("ascii") + b"=" * (-len(given) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


_BEGINNING = 24_000
_SNIPPET = 160
WHOLE_BYTES = 60_000_000
"""Of larger mails only the beginning is read."""
_LARGE_BEGINNING = 4_000_000

Fetched = Mapping[bytes, object]


def mail_not_found() -> NotFound:
    return NotFound(
        "The mail is no longer there; it was moved or deleted.", hint="List again and use an id from there."
    )


def select_message(client: ImapClient, place: ImapMessageId, *, readonly: bool) -> None:
    """Select the folder of a mail. Raises NotFound if the mail or folder is gone, or the folder was renumbered."""
    if not folder_exists(client, place.folder):
        raise mail_not_found()
    if get_validity(client.select_folder(place.folder, readonly=readonly)) != place.validity:
        raise mail_not_found()
    if place.uid not in client.fetch([place.uid], ["UID"]):
        raise mail_not_found()


def folder_exists(client: ImapClient, name: str) -> bool:
    return any(
        name == known or name.upper() == known.upper() == "INBOX" for _, _, known in imap_client.list_folders(client)
    )


def get_validity(selected: Mapping[bytes, object]) -> int:
    value = selected.get(b"UIDVALIDITY")
    return value if isinstance(value, int) else 0


def load_summaries(
    client: ImapClient, folder: ImapFolder, validity: int, uids: Sequence[int]
) -> dict[int, MessageSummary]:
    """Summaries of mails of the selected folder in this order, without those deleted meanwhile."""
    fetched = client.fetch(uids, ["FLAGS", "INTERNALDATE", "BODYSTRUCTURE", f"BODY.PEEK[]<0.{_BEGINNING}>"])
    found: dict[int, MessageSummary] = {}
    for uid in uids:
        if uid in fetched:
            parsed = parse_mail(_get_bytes(fetched[uid], b"BODY[]<0>"))
            found[uid] = build_summary(ImapMessageId(folder.name, validity, uid), folder.label, fetched[uid], parsed)
    return found


def read_message(client: ImapClient, place: ImapMessageId, label: str) -> MailMessage:
    """Read a mail of the selected folder without marking it as read."""
    data, size = load_raw(client, place)
    fetched = client.fetch([place.uid], ["FLAGS", "INTERNALDATE", "BODYSTRUCTURE"])
    if place.uid not in fetched:
        raise mail_not_found()
    parsed = parse_mail(data)
    notice = f"The mail has {size} bytes; only its beginning was read." if size > len(data) else None
    content = extract_body(parsed.root)
    return MailMessage(build_summary(place, label, fetched[place.uid], parsed, content), content, notice)


def load_raw(client: ImapClient, place: ImapMessageId) -> tuple[bytes, int]:
    """Bytes of a mail, cut if it is very large, and its size."""
    sizes = client.fetch([place.uid], ["RFC822.SIZE"])
    if place.uid not in sizes:
        raise mail_not_found()
    size = cast("int", sizes[place.uid].get(b"RFC822.SIZE", 0))
    if size > WHOLE_BYTES:
        fetched = client.fetch([place.uid], [f"BODY.PEEK[]<0.{_LARGE_BEGINNING}>"])
        return _get_bytes(fetched.get(place.uid, {}), b"BODY[]<0>"), size
    fetched = client.fetch([place.uid], ["BODY.PEEK[]"])
    if place.uid not in fetched:
        raise mail_not_found()
    data = _get_bytes(fetched[place.uid], b"BODY[]")
    return data, len(data)


def build_summary(
    place: ImapMessageId, label: str, fetched: Fetched, parsed: ParsedMail, content: MailBody | None = None
) -> MessageSummary:
    flags = {flag.lower() for flag in cast("tuple[bytes, ...]", fetched.get(b"FLAGS", ()))}
    arrived = fetched.get(b"INTERNALDATE")
    headers = parsed.headers
    return MessageSummary(
        id=place.encode(),
        thread_id=thread_id_of(headers.message_id, headers.references, place),
        headers=headers,
        date=headers.date or (to_utc(arrived) if isinstance(arrived, datetime) else None),
        snippet=make_snippet((content or extract_body(parsed.root)).text),
        labels=(
            label,
            *(["UNREAD"] if b"\\seen" not in flags else []),
            *(["STARRED"] if b"\\flagged" in flags else []),
        ),
        has_attachments=has_attachment(fetched.get(b"BODYSTRUCTURE")),
    )


def make_snippet(text: str) -> str:
    flat = " ".join(text[: _SNIPPET * 20].split())
    return flat if len(flat) <= _SNIPPET else f"{flat[: _SNIPPET - 1]}…"


def has_attachment(structure: object) -> bool:
    if not isinstance(structure, tuple) or not structure:
        return False
    node = cast("tuple[object, ...]", structure)
    if isinstance(node[0], list):
        return any(has_attachment(part) for part in cast("list[object]", node[0]))
    kind = [part.lower() if isinstance(part, bytes) else b"" for part in node[:2]]
    if kind[0] == b"text" and kind[1:] in ([b"plain"], [b"html"]):
        return any(_is_attachment(part) for part in node[2:])
    return True


def to_utc(at: datetime) -> datetime:
    """The library returns local times without a zone."""
    return at.astimezone(UTC)


def _is_attachment(part: object) -> bool:
    if not isinstance(part, tuple):
        return False
    first = cast("tuple[object, ...]", part)[:1]
    return bool(first) and isinstance(first[0], bytes) and first[0].lower() == b"attachment"


def _get_bytes(fetched: Fetched, key: bytes) -> bytes:
    value = fetched.get(key)
    return value if isinstance(value, bytes) else b""


@dataclass(frozen=True, slots=True)
class LabelChange:
    """Change of labels in a mailbox where every mail is in one folder."""

    set_flags: tuple[bytes, ...]
    clear_flags: tuple[bytes, ...]
    copy_to: tuple[ImapFolder, ...]
    move_to: ImapFolder | None


def plan_label_change(
    client: ImapClient, folders: ImapFolders, here: ImapFolder, add: tuple[str, ...], remove: tuple[str, ...]
) -> LabelChange:
    """Adding a label copies, replacing the folder's label moves, and removing it archives."""
    setting: list[bytes] = []
    clearing: list[bytes] = []
    for label, adding in [*((one, True) for one in add), *((one, False) for one in remove)]:
        mark = FLAGS.get(label.upper())
        if mark is not None:
            (setting if adding != (label.upper() == "UNREAD") else clearing).append(mark)
    targets = [one for one in dict.fromkeys(folders.find_all(add, "add_label_ids")) if one.name != here.name]
    leaving = folders.find_all(remove, "remove_label_ids")
    if any(folder in leaving for folder in targets):
        raise InvalidArguments("The same label can not be added and removed.", field="remove_label_ids")
    if not any(folder.name == here.name for folder in leaving):
        return LabelChange(tuple(setting), tuple(clearing), tuple(targets), None)
    goal = targets[0] if targets else folders.ensure(client, ARCHIVE)
    return LabelChange(tuple(setting), tuple(clearing), tuple(targets[1:]), goal if goal.name != here.name else None)


def apply_label_change(client: ImapClient, place: ImapMessageId, change: LabelChange) -> ImapMessageId:
    """Apply the change to a mail of the selected folder. Returns its new location."""
    if change.set_flags:
        client.add_flags([place.uid], change.set_flags)
    if change.clear_flags:
        client.remove_flags([place.uid], change.clear_flags)
    for folder in change.copy_to:
        _copy_once(client, place, folder.name)
    return move_message(client, place, change.move_to.name) if change.move_to is not None else place


def move_message(client: ImapClient, place: ImapMessageId, target: str) -> ImapMessageId:
    """Move a mail of the selected folder. Returns its new location."""
    message_id = load_header_id(client, place.uid)
    before = client.folder_status(target, ["UIDNEXT"]).get(b"UIDNEXT", 1)
    if client.has_capability("MOVE"):
        client.move([place.uid], target)
    else:
        client.copy([place.uid], target)
        delete_messages(client, [place.uid])
    validity = get_validity(client.select_folder(target))
    added = [uid for uid in _search_new(client, before, message_id) if uid >= before]
    return ImapMessageId(target, validity, max(added, default=before))


def delete_messages(client: ImapClient, uids: list[int]) -> None:
    """Delete mails of the selected folder. Without UIDPLUS, only mark them: EXPUNGE would delete other marked mails."""
    client.add_flags(uids, [b"\\Deleted"])
    if client.has_capability("UIDPLUS"):
        client.uid_expunge(uids)


def load_header_id(client: ImapClient, uid: int) -> str:
    """Message-ID of a mail of the selected folder, or empty."""
    fetched = client.fetch([uid], ["BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"]).get(uid, {})
    raw = next((value for value in fetched.values() if isinstance(value, bytes)), b"")
    return next(iter(find_message_ids(raw.decode("utf-8", "replace"))), "")


def find_by_header_id(client: ImapClient, message_id: str) -> list[int]:
    """Mails of the selected folder with this Message-ID."""
    criteria: Criteria = ["HEADER", "Message-ID", SearchText(message_id.strip("<>"))]
    found = client.search(imap_client.encode_search(criteria))
    return sorted(uid for uid in found if load_header_id(client, uid) == message_id)


def _copy_once(client: ImapClient, place: ImapMessageId, target: str) -> None:
    """Copy a mail unless the folder has it, so that a repeated call adds no second copy."""
    message_id = load_header_id(client, place.uid)
    if message_id:
        client.select_folder(target, readonly=True)
        there = find_by_header_id(client, message_id)
        client.select_folder(place.folder)
        if there:
            return
    client.copy([place.uid], target)


def _search_new(client: ImapClient, start: int, message_id: str) -> list[int]:
    criteria: Criteria = ["UID", f"{start}:*"]
    if message_id:
        criteria += ["HEADER", "Message-ID", SearchText(message_id.strip("<>"))]
    return client.search(imap_client.encode_search(criteria))
