"""A mail as a tree of parts, and what a reader wants of it: the text, the files, the invitation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from annabelle.servers.gmail.mail.charsets import decode_text
from annabelle.servers.gmail.mail.html_text import html_to_text
from annabelle.servers.gmail.mail.models import Attachment, Content, Invitation
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    from annabelle.servers.gmail.mail import invitation
else:
    invitation = deferred_module("annabelle.servers.gmail.mail.invitation")

_ENDINGS = {"text/calendar": ".ics", "message/rfc822": ".eml", "application/ms-tnef": ".dat", "text/html": ".html"}
MAX_TEXT_CHARS = 2_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """One part. `data` is None when its content has to be fetched."""

    id: str
    content_type: str
    charset: str = "utf-8"
    name: str = ""
    attached: bool = False
    """Whether the mail says that it is a file, not something to show."""
    size: int = 0
    data: bytes | None = None
    children: tuple[Part, ...] = ()

    def walk(self) -> Iterator[Part]:
        """This part and those inside; what is inside an attached mail belongs to that mail."""
        yield self
        if self.content_type != "message/rfc822":
            for child in self.children:
                yield from child.walk()

    def text(self) -> str:
        return decode_text(self.data or b"", self.charset).replace("\r\n", "\n")[:MAX_TEXT_CHARS]


def content_of(root: Part) -> Content:
    """What the mail says, the files it brings, and what it invites to."""
    files = tuple(_attachment(part) for part in root.walk() if is_file(part))
    return Content(text=_shown(root).strip(), attachments=files, invitation=_invitation(root))


def is_file(part: Part) -> bool:
    if part.content_type.startswith("multipart/"):
        return False
    if part.attached or part.name or part.content_type in ("message/rfc822", "text/calendar"):
        return True
    return not part.content_type.startswith("text/") and (part.size > 0 or bool(part.data))


def file_name(part: Part) -> str:
    return part.name or f"part-{part.id}{_ENDINGS.get(part.content_type, '')}"


def _attachment(part: Part) -> Attachment:
    return Attachment(part.id, file_name(part), part.content_type, part.size)


def _shown(part: Part) -> str:
    """The text to read: plain rather than HTML where the mail offers both."""
    if part.content_type == "message/rfc822" or (is_file(part) and not part.children):
        return ""
    if part.content_type == "multipart/alternative":
        plain = [text for text in (_shown(child) for child in part.children if not _has_html(child)) if text.strip()]
        rich = (text for text in (_shown(child) for child in reversed(part.children)) if text.strip())
        return plain[0] if plain else next(rich, "")
    if part.children:
        return "\n\n".join(text for text in (_shown(child).strip() for child in part.children) if text)
    if part.content_type == "text/html":
        return html_to_text(part.text())
    return part.text() if part.content_type.startswith("text/") else ""


def _has_html(part: Part) -> bool:
    return any(one.content_type == "text/html" and not one.attached for one in part.walk())


def _invitation(root: Part) -> Invitation | None:
    for part in root.walk():
        if part.content_type == "text/calendar" and part.data:
            found = invitation.read_invitation(part.data)
            if found is not None:
                return found
    return None
