"""Text-based formats: plain text, CSV, HTML, mail and RTF."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

from annabelle.core.html_text import HtmlPage, parse_html
from annabelle.servers.documents.formats.base import (
    DocumentFacts,
    DocumentFormat,
    DocumentPart,
    DocumentTable,
    Row,
    WantedParts,
    cut_cell,
)
from annabelle.servers.kit.charset import decode_text

_DELIMITERS = ",;\t|"
_PROBED_LINES = 20


class TextFormat(DocumentFormat):
    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        yield DocumentPart(1, "", decode_text(data).replace("\r\n", "\n"))

    def facts(self, data: bytes) -> DocumentFacts:
        first = next((line for line in decode_text(data[:10_000]).splitlines() if line.strip()), "")
        title = first.lstrip("#").strip()[:200] or None if first.startswith("#") else None
        return DocumentFacts(title=title)


class CsvFormat(TextFormat):
    """Rows of a text. The delimiter is found by counting."""

    def tables(self, data: bytes) -> Iterator[DocumentTable]:
        text = decode_text(data)
        yield DocumentTable("rows", _read_csv_rows(text))


def _read_csv_rows(text: str) -> Iterator[Row]:
    lines = text.splitlines()[:_PROBED_LINES]
    counts = {sign: [line.count(sign) for line in lines if line.strip()] for sign in _DELIMITERS}
    # The sign that most lines contain, preferably the same number of times.
    best = max(_DELIMITERS, key=lambda sign: (sum(map(bool, counts[sign])), -len(set(counts[sign])), sum(counts[sign])))
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=best):
        yield [cut_cell(cell) or None for cell in row]


TEXT, CSV = TextFormat(), CsvFormat()


class HtmlFormat(DocumentFormat):
    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        yield DocumentPart(1, "", _read_page(data).text)

    def facts(self, data: bytes) -> DocumentFacts:
        return DocumentFacts(title=_read_page(data).title or None)

    def tables(self, data: bytes) -> Iterator[DocumentTable]:
        for number, rows in enumerate(_read_page(data).tables, start=1):
            yield DocumentTable(f"table {number}", ([cut_cell(cell) or None for cell in row] for row in rows))


def _read_page(data: bytes, charset: str | None = None) -> HtmlPage:
    return parse_html(decode_text(data, charset, declared=True))


HTML = HtmlFormat()


_SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")


class MailFormat(DocumentFormat):
    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        message = _parse_mail(data)
        head = [f"{name}: {value}" for name in _SHOWN_HEADERS if (value := _header(message, name))]
        names = [f"Attachment: {name}" for name in _attachments(message)]
        yield DocumentPart(1, "", "\n".join([*head, *names, "", _body(message)]))

    def facts(self, data: bytes) -> DocumentFacts:
        message = _parse_mail(data)
        return DocumentFacts(
            title=_header(message, "Subject"),
            author=_header(message, "From"),
            created=_header(message, "Date"),
            attachments=_attachments(message),
        )


def _parse_mail(data: bytes) -> EmailMessage:
    return BytesParser(policy=policy.default).parsebytes(data)


def _header(message: EmailMessage, name: str) -> str | None:
    try:
        value = message[name]
    except (ValueError, IndexError, AttributeError, TypeError):
        return None  # a header the library cannot parse
    return " ".join(str(value).split())[:1000] if value is not None else None


def _body(message: EmailMessage) -> str:
    part = message.get_body(("plain", "html"))
    if part is None:
        return ""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    charset = part.get_content_charset()
    if part.get_content_type() == "text/html":
        return _read_page(data, charset).text
    return decode_text(data, charset).replace("\r\n", "\n")


def _attachments(message: EmailMessage) -> list[str]:
    parts = (part for part in message.walk() if part.get_content_disposition() == "attachment" or part.get_filename())
    return [" ".join((part.get_filename() or part.get_content_type()).split())[:200] for part in parts][:100]


MAIL = MailFormat()


_TOKEN = re.compile(
    r"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)", re.IGNORECASE
)
_BREAKS = {"par": "\n", "line": "\n", "sect": "\n\n", "page": "\n\n", "tab": "\t", "cell": " | ", "row": "\n",
           "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“",
           "rdblquote": "”"}  # fmt: skip
_HIDDEN_GROUPS = frozenset(
    ("fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "footer", "generator", "themedata",
     "listtable", "listoverridetable", "rsidtbl", "xmlnstbl", "datastore", "latentstyles")
)  # fmt: skip


class RtfFormat(DocumentFormat):
    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        yield DocumentPart(1, "", _to_plain_text(data.decode("latin-1")).strip())


def _to_plain_text(source: str) -> str:
    """Read token by token. Groups nest, and a group of settings is left out with everything in it."""
    pieces: list[str] = []
    hidden = [False]
    skip = 0
    for match in _TOKEN.finditer(source):
        word, number, code, sign, brace, text = match.groups()
        if brace == "{":
            hidden.append(hidden[-1])
        elif brace == "}":
            if len(hidden) > 1:
                hidden.pop()
        elif sign == "*" or (word is not None and word.lower() in _HIDDEN_GROUPS):
            hidden[-1] = True
        elif hidden[-1]:
            continue
        elif word == "u" and number is not None:
            pieces.append(chr(int(number) % 65_536) if not 0xD800 <= int(number) % 65_536 < 0xE000 else "\ufffd")
            skip = 1  # a substitute for readers without Unicode follows
        elif word is not None:
            pieces.append(_BREAKS.get(word.lower(), ""))
        elif skip and (code is not None or text is not None):
            pieces.append((text or "")[1:])
            skip = 0
        elif code is not None:
            pieces.append(bytes([int(code, 16)]).decode("cp1252", errors="replace"))
        elif sign is not None:
            pieces.append({"~": " ", "_": "-", "\\": "\\", "{": "{", "}": "}"}.get(sign, ""))
        elif text is not None:
            pieces.append(text)
    return "".join(pieces)


RTF = RtfFormat()
