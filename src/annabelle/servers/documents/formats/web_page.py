"""HTML files as text with headings, and their tables. Nothing they refer to is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from annabelle.servers.documents.formats.base import Facts, Format, Part, Row, Table, Wanted, cut_cell
from annabelle.servers.documents.formats.plain import decoded

_BLOCKS = frozenset(
    ("p", "br", "div", "li", "tr", "ul", "ol", "table", "section", "article", "header", "footer", "blockquote", "pre",
     "h1", "h2", "h3", "h4", "h5", "h6", "dt", "dd", "hr", "title")
)  # fmt: skip
_HIDDEN = frozenset(("script", "style", "template", "noscript", "svg", "head"))
_CHARSET = re.compile(rb"charset=[\"']?\s*([\w-]{1,40})", re.IGNORECASE)


class _Page(HTMLParser):
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


class WebPage(Format):
    def parts(self, data: bytes, wanted: Wanted) -> Iterator[Part]:
        page = read_page(data)
        lines = (re.sub(r"\s+", " ", line).strip(" |") for line in "".join(page.pieces).split("\n"))
        yield Part(1, "", re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip())

    def facts(self, data: bytes) -> Facts:
        return Facts(title=" ".join(read_page(data).title.split())[:300] or None)

    def tables(self, data: bytes) -> Iterator[Table]:
        for number, rows in enumerate(read_page(data).tables, start=1):
            yield Table(f"table {number}", iter(rows))


def read_page(data: bytes) -> _Page:
    match = _CHARSET.search(data[:4096])
    page = _Page()
    page.feed(decoded(data, match[1].decode() if match else None))
    page.close()
    return page


FORMAT = WebPage()
