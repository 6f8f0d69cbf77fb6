"""Text-based formats: plain text, CSV, HTML, mail and RTF."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from html.parser import HTMLParser

from annabelle.servers.documents.formats.base import (
    DocumentFacts,
    DocumentFormat,
    DocumentPart,
    DocumentTable,
    Row,
    WantedParts,
    cut_cell,
)

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DELIMITERS = ",;\t|"
_PROBED_LINES = 20


def decode_text(data: bytes, charset: str | None = None) -> str:
    """UTF-8, what a mark at the start or the file itself says, or Latin-1, which fits anything."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    for encoding in filter(None, ("utf-8", charset)):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError, ValueError):
            continue
    return data.decode("latin-1")


class TextFormat(DocumentFormat):
    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        yield DocumentPart(1, "", decode_text(data).replace("\r\n", "\n"))

    def facts(self, data: bytes) -> DocumentFacts:
        first = next((line for line in decode_text(data[:10_000]).splitlines() if line.strip()), "")
        title = first.lstrip("#").strip()[:200] or None if first.startswith("#") else None
        return DocumentFacts(title=title)


class CsvFormat(TextFormat):
    """Rows of a text; what separates cells is found by counting."""

    def tables(self, data: bytes) -> Iterator[DocumentTable]:
        text = decode_text(data)
        yield DocumentTable("rows", _read_csv_rows(text))


def _read_csv_rows(text: str) -> Iterator[Row]:
    lines = text.splitlines()[:_PROBED_LINES]
    counts = {sign: [line.count(sign) for line in lines if line.strip()] for sign in _DELIMITERS}
    # The sign that is in most lines, and in each of them as often.
    best = max(_DELIMITERS, key=lambda sign: (sum(map(bool, counts[sign])), -len(set(counts[sign])), sum(counts[sign])))
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=best):
        yield [cut_cell(cell) or None for cell in row]


TEXT, CSV = TextFormat(), CsvFormat()


_BLOCKS = frozenset(
    ("p", "br", "div", "li", "tr", "ul", "ol", "table", "section", "article", "header", "footer", "blockquote", "pre",
     "h1", "h2", "h3", "h4", "h5", "h6", "dt", "dd", "hr", "title")
)  # fmt: skip
_HIDDEN = frozenset(("script", "style", "template", "noscript", "svg", "head"))
_CHARSET = re.compile(rb"charset=[\"']?\s*([\w-]{1,40})", re.IGNORECASE)


class _HtmlPageParser(HTMLParser):
    """Collects what a reader would see, the title, and tables apart."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.title = ""
        self.tables: list[list[Row]] = []
        self._open_tables: list[list[Row]] = []
        self._cell: list[str] | None = None
        self._hidden: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag == "title":
            self._in_title = True
        elif tag == "table":
            self._end_cell()
            self._open_tables.append([])
            self.tables.append(self._open_tables[-1])
        elif tag == "tr" and self._open_tables:
            self._end_cell()
            self._open_tables[-1].append([])
        elif tag in ("td", "th"):
            self._end_cell()
            self._cell = []
            self.pieces.append(" | ")
        if tag in _BLOCKS:
            self.pieces.append("\n")
        if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self.pieces.append("#" * int(tag[1]) + " ")
        if tag == "li":
            self.pieces.append("- ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                pass
        if tag == "title":
            self._in_title = False
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()
        if tag == "table" and self._open_tables:
            self._open_tables.pop()
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data[:300]
        elif not self._hidden:
            self.pieces.append(data)
            if self._cell is not None:
                self._cell.append(data)

    def _end_cell(self) -> None:
        if self._cell is not None and self._open_tables and self._open_tables[-1]:
            self._open_tables[-1][-1].append(cut_cell(" ".join("".join(self._cell).split())) or None)
        self._cell = None


class HtmlFormat(DocumentFormat):
    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        page = read_page(data)
        lines = (re.sub(r"\s+", " ", line).strip(" |") for line in "".join(page.pieces).split("\n"))
        yield DocumentPart(1, "", re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip())

    def facts(self, data: bytes) -> DocumentFacts:
        return DocumentFacts(title=" ".join(read_page(data).title.split())[:300] or None)

    def tables(self, data: bytes) -> Iterator[DocumentTable]:
        for number, rows in enumerate(read_page(data).tables, start=1):
            yield DocumentTable(f"table {number}", iter(rows))


def read_page(data: bytes) -> _HtmlPageParser:
    match = _CHARSET.search(data[:4096])
    page = _HtmlPageParser()
    page.feed(decode_text(data, match[1].decode() if match else None))
    page.close()
    return page


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
        return next(HTML.parts(data, WantedParts())).text
    try:
        return data.decode(part.get_content_charset() or "utf-8", errors="replace").replace("\r\n", "\n")
    except LookupError:
        return data.decode("utf-8", errors="replace")


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
    """Read token by token: groups nest, and a group of settings is hidden with all that is in it."""
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
            skip = 1  # a stand-in for readers that know no Unicode follows
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
