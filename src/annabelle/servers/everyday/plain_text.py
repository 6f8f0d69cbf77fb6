"""HTML from a stranger as plain words."""

from __future__ import annotations

import re
import unicodedata
from html.parser import HTMLParser

_BREAKS = frozenset(("p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"))
_HIDDEN = frozenset(("script", "style", "template", "noscript"))
_MAX_MARKUP = 200_000


class _Words(HTMLParser):
    """Collects what a reader would see."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        if tag in _BREAKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)


def plain(markup: str, limit: int) -> str:
    """The words of some HTML, on as few lines as they need, cut at a limit; no control or direction characters."""
    words = _Words()
    words.feed(markup[:_MAX_MARKUP])
    words.close()
    text = "".join(char for char in "".join(words.pieces) if char == "\n" or unicodedata.category(char)[0] != "C")
    lines = (re.sub(r"\s+", " ", line).strip() for line in text.split("\n"))
    whole = "\n".join(line for line in lines if line)
    return whole if len(whole) <= limit else f"{whole[: limit - 1]}…"
