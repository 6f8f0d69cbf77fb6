"""Text, Markdown and CSV files."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator

from annabelle.servers.documents.formats.base import Facts, Format, Part, Row, Table, Wanted, cut_cell

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DELIMITERS = ",;\t|"
_PROBED_LINES = 20


def decoded(data: bytes, charset: str | None = None) -> str:
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


class Text(Format):
    def parts(self, data: bytes, wanted: Wanted) -> Iterator[Part]:
        yield Part(1, "", decoded(data).replace("\r\n", "\n"))

    def facts(self, data: bytes) -> Facts:
        first = next((line for line in decoded(data[:10_000]).splitlines() if line.strip()), "")
        title = first.lstrip("#").strip()[:200] or None if first.startswith("#") else None
        return Facts(title=title)


class Csv(Text):
    """Rows of a text; what separates cells is found by counting."""

    def tables(self, data: bytes) -> Iterator[Table]:
        text = decoded(data)
        yield Table("rows", _rows(text))


def _rows(text: str) -> Iterator[Row]:
    lines = text.splitlines()[:_PROBED_LINES]
    counts = {sign: [line.count(sign) for line in lines if line.strip()] for sign in _DELIMITERS}
    # The sign that is in most lines, and in each of them as often.
    best = max(_DELIMITERS, key=lambda sign: (sum(map(bool, counts[sign])), -len(set(counts[sign])), sum(counts[sign])))
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=best):
        yield [cut_cell(cell) or None for cell in row]


TEXT, CSV = Text(), Csv()
