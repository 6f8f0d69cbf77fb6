"""Ids of mails in a plain mailbox: the folder, and the mail's number in it, which stays as long as the mail does."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from annabelle.core.errors import InvalidArguments


@dataclass(frozen=True, slots=True)
class Place:
    """Where a mail is. `validity` changes when the server numbers a folder anew."""

    folder: str
    validity: int
    uid: int

    def id(self) -> str:
        return _pack(f"{self.validity}.{self.uid}.{self.folder}")


def read_place(message_id: str, field: str = "message_id") -> Place:
    """The place an id names; an id that is none of ours is named as the mistake."""
    validity, _, rest = _unpack(message_id).partition(".")
    uid, _, folder = rest.partition(".")
    if validity.isdecimal() and uid.isdecimal() and folder and len(validity) < 12 and len(uid) < 12:
        return Place(folder, int(validity), int(uid))
    raise InvalidArguments("This is not the id of a mail in this mailbox.", hint="list_emails gives ids.", field=field)


def draft_id(message_id: str, place: Place) -> str:
    """Stays when a draft is rewritten, which gives it a new number: its Message-ID does, if it has one."""
    return _pack(f"draft:{message_id}") if message_id else place.id()


def read_draft_id(given: str) -> str | Place:
    """The Message-ID of the draft, or where it is."""
    kind, _, message_id = _unpack(given).partition(":")
    if kind == "draft" and message_id:
        return message_id
    return read_place(given, "draft_id")


def thread_of(message_id: str, references: tuple[str, ...], place: Place) -> str:
    """The same word for all mails that answer one another."""
    root = references[0] if references else message_id or place.id()
    return hashlib.sha256(root.encode("utf-8", "replace")).hexdigest()[:16]


def _pack(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _unpack(given: str) -> str:
    try:
        padded = given.encode("ascii") + b"=" * (-len(given) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
