"""Converts HTML to plain text as a reader would see it. Nothing is loaded or run."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

_HIDDEN = {"script", "style", "head", "title", "template", "noscript", "svg", "object", "iframe"}
_BLOCKS = {
    "p", "div", "section", "article", "header", "footer", "table", "tr", "ul", "ol", "blockquote", "pre", "form",
    "h1", "h2", "h3", "h4", "h5", "h6", "hr",
}  # fmt: skip
_VOID = {"br", "hr", "img", "meta", "link", "input", "area", "base", "col", "embed", "source", "track", "wbr"}
_DECLARATION = re.compile(r"<[!?]")
_MAX_DEPTH = 2_000
_MAX_CHARS = 300_000
_UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE)


def html_to_text(html: str) -> str:
    """Readable text. What the page hides from a reader's eyes is left out here as well."""
    reader = _HtmlTextParser()
    page = _without_declarations(html[:_MAX_CHARS])
    # What comes after the last tag that is closed is text, whatever it looks like; the parser would look for the end
    # of each of its tags anew.
    end = page.rfind(">") + 1
    reader.feed(page[:end])
    reader.handle_data(page[end:].partition("<")[0])
    return _normalize_blank_lines("".join(reader.out))


def _without_declarations(html: str) -> str:
    """Comments, doctypes and the like are not for readers, and the parser takes ages for many that do not end."""
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
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
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
        if tag == "br":
            self.out.append("\n")
        elif tag == "li":
            self.out.append("\n- ")
        elif tag in ("td", "th"):
            self.out.append("\t")
        elif tag in _BLOCKS:
            self.out.append("\n\n" if tag in ("p", "blockquote", "table") or tag.startswith("h") else "\n")
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
        if not self._hidden and tag in _BLOCKS:
            self.out.append("\n\n" if tag == "p" or tag.startswith("h") else "\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.out.append(re.sub(r"\s+", " ", data))


def _normalize_blank_lines(text: str) -> str:
    lines = [re.sub(r"[ \t\xa0]+", " ", line).strip() for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
