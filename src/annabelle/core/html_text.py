"""Converts HTML to plain text as a reader would see it. Nothing is loaded or run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser

_HIDDEN = {"script", "style", "head", "title", "template", "noscript", "svg", "object", "iframe"}
_BLOCKS = {
    "p", "div", "section", "article", "header", "footer", "table", "tr", "ul", "ol", "blockquote", "pre", "form",
    "h1", "h2", "h3", "h4", "h5", "h6", "hr", "dt", "dd",
}  # fmt: skip
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_VOID = {"br", "hr", "img", "meta", "link", "input", "area", "base", "col", "embed", "source", "track", "wbr"}
_DECLARATION = re.compile(r"<[!?]")
_MAX_DEPTH = 2_000
_MAX_CHARS = 300_000
_MAX_TITLE = 300
_UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A page with `#` before its headings and ` | ` between the cells of a row."""

    text: str
    title: str
    tables: list[list[list[str]]]


def html_to_text(html: str) -> str:
    """Readable text of the first 300,000 characters, without what the page hides from a reader."""
    parser = _parse(html[:_MAX_CHARS], structured=False)
    return _normalize_blank_lines("".join(parser.out))


def parse_html(html: str) -> HtmlPage:
    """The whole page, with its structure."""
    parser = _parse(html, structured=True)
    text = _normalize_blank_lines("".join(parser.out), stripped=" |")
    return HtmlPage(text, " ".join(parser.title.split())[:_MAX_TITLE], parser.tables)


def _parse(html: str, *, structured: bool) -> _HtmlTextParser:
    parser = _HtmlTextParser(structured=structured)
    page = _without_declarations(html)
    # What follows the last closed tag is text, whatever it looks like. The parser would search for the end of each
    # of its tags again.
    end = page.rfind(">") + 1
    parser.feed(page[:end])
    parser.handle_data(page[end:].partition("<")[0])
    return parser


def _without_declarations(html: str) -> str:
    """Drop comments, doctypes and the like. The parser is slow with many that do not end."""
    kept: list[str] = []
    at = 0
    while found := _DECLARATION.search(html, at):
        start = found.start()
        kept.append(html[at:start])
        closing = "-->" if html.startswith("<!--", start) else ">"
        end = html.find(closing, start + 2)
        if end < 0:
            return "".join(kept)
        at = end + len(closing)
    return "".join([*kept, html[at:]])


class _HtmlTextParser(HTMLParser):
    def __init__(self, *, structured: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.title = ""
        self.tables: list[list[list[str]]] = []
        self._structured = structured
        self._open_tables: list[list[list[str]]] = []
        self._cell_start: int | None = None
        self._open: list[tuple[str, bool]] = []
        self._counts: Counter[str] = Counter()
        self._hidden = 0
        self._link: tuple[str, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in _VOID and len(self._open) < _MAX_DEPTH:
            hides = tag in _HIDDEN or "hidden" in given or bool(_UNSEEN.search(given.get("style", "")))
            self._open.append((tag, hides))
            self._counts[tag] += 1
            self._hidden += hides
        if self._hidden:
            return
        if self._structured:
            self._open_cell_or_table(tag)
        if tag == "br":
            self.out.append("\n")
        elif tag == "li":
            self.out.append("\n- ")
        elif tag in ("td", "th"):
            self.out.append(" | " if self._structured else "\t")
            self._cell_start = len(self.out)
        elif tag in _BLOCKS:
            self.out.append("\n\n" if tag in ("p", "blockquote", "table") or tag.startswith("h") else "\n")
            if self._structured and tag in _HEADINGS:
                self.out.append("#" * int(tag[1]) + " ")
        elif tag == "img" and given.get("alt"):
            self.out.append(f"[{given['alt'][:200]}]")
        elif tag == "a":
            self._link = (given.get("href", ""), len(self.out))

    def handle_endtag(self, tag: str) -> None:
        if not self._counts[tag]:
            return
        if tag == "a" and self._link is not None and not self._hidden:
            (address, start), self._link = self._link, None
            shown = "".join(self.out[start:]).strip()
            if address.startswith(("http://", "https://")) and address.rstrip("/") != shown.rstrip("/"):
                self.out.append(f" ({address[:2_000]})" if shown else "")
        while self._open:
            name, hides = self._open.pop()
            self._counts[name] -= 1
            self._hidden -= hides
            if name == tag:
                break
        if self._hidden:
            return
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()
        if tag == "table" and self._open_tables:
            self._open_tables.pop()
        if tag in _BLOCKS:
            self.out.append("\n\n" if tag == "p" or tag.startswith("h") else "\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.out.append(re.sub(r"\s+", " ", data))
        elif self._open and self._open[-1][0] == "title" and len(self.title) < _MAX_TITLE:
            self.title += data[:_MAX_TITLE]

    def _open_cell_or_table(self, tag: str) -> None:
        if tag in ("table", "tr", "td", "th"):
            self._end_cell()
        if tag == "table":
            self._open_tables.append([])
            self.tables.append(self._open_tables[-1])
        elif tag == "tr" and self._open_tables:
            self._open_tables[-1].append([])

    def _end_cell(self) -> None:
        if self._cell_start is not None and self._open_tables and self._open_tables[-1]:
            self._open_tables[-1][-1].append(" ".join("".join(self.out[self._cell_start :]).split()))
        self._cell_start = None


def _normalize_blank_lines(text: str, stripped: str = " ") -> str:
    lines = [re.sub(r"\s+", " ", line).strip(stripped) for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
