"""Mail that was saved as a file: its head, its text, and the names of what is attached."""

from __future__ import annotations

from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

from annabelle.servers.documents.formats.base import Facts, Format, Part, Wanted
from annabelle.servers.documents.formats.web_page import FORMAT as WEB_PAGE

_HEAD = ("From", "To", "Cc", "Date", "Subject")


class Mail(Format):
    def parts(self, data: bytes, wanted: Wanted) -> Iterator[Part]:
        message = _open(data)
        head = [f"{name}: {value}" for name in _HEAD if (value := _header(message, name))]
        names = [f"Attachment: {name}" for name in _attachments(message)]
        yield Part(1, "", "\n".join([*head, *names, "", _body(message)]))

    def facts(self, data: bytes) -> Facts:
        message = _open(data)
        return Facts(
            title=_header(message, "Subject"),
            author=_header(message, "From"),
            created=_header(message, "Date"),
            attachments=_attachments(message),
        )


def _open(data: bytes) -> EmailMessage:
    return BytesParser(policy=policy.default).parsebytes(data)


def _header(message: EmailMessage, name: str) -> str | None:
    try:
        value = message[name]
    except (ValueError, IndexError, AttributeError, TypeError):
        return None  # a head that is broken beyond what the library mends
    return " ".join(str(value).split())[:1000] if value is not None else None


def _body(message: EmailMessage) -> str:
    part = message.get_body(("plain", "html"))
    if part is None:
        return ""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    if part.get_content_type() == "text/html":
        return next(WEB_PAGE.parts(data, Wanted())).text
    try:
        return data.decode(part.get_content_charset() or "utf-8", errors="replace").replace("\r\n", "\n")
    except LookupError:
        return data.decode("utf-8", errors="replace")


def _attachments(message: EmailMessage) -> list[str]:
    parts = (part for part in message.walk() if part.get_content_disposition() == "attachment" or part.get_filename())
    return [" ".join((part.get_filename() or part.get_content_type()).split())[:200] for part in parts][:100]


FORMAT = Mail()
