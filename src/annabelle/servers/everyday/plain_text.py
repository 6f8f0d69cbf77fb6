"""HTML from a stranger as plain words.

Read from left to right with searches that never begin anew: the library's parser needs minutes for some markup that
was made for it, and a thread can not be ended.
"""

from __future__ import annotations

import html
import re
import unicodedata

_BREAKS = frozenset(("p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"))
_HIDDEN = frozenset(("script", "style", "template", "noscript"))
_MAX_MARKUP = 200_000
_TAG = re.compile(r"/?([a-zA-Z][a-zA-Z0-9]{0,20})")


def plain(markup: str, limit: int) -> str:
    """The words of some HTML, on as few lines as they need, cut at a limit; no control or direction characters."""
    words = html.unescape("".join(_pieces(markup[:_MAX_MARKUP])))
    text = "".join(char for char in words if char == "\n" or unicodedata.category(char)[0] != "C")
    lines = (" ".join(line.split()) for line in text.split("\n"))
    whole = "\n".join(line for line in lines if line)
    return whole if len(whole) <= limit else f"{whole[: limit - 1]}…"


def _pieces(markup: str) -> list[str]:
    """What a reader would see between the tags. What is never closed hides the rest, as it would in a browser."""
    pieces: list[str] = []
    small = markup.lower()
    position = 0
    while (start := markup.find("<", position)) >= 0:
        pieces.append(markup[position:start])
        if markup.startswith("<!--", start):
            end = markup.find("-->", start + 4)
            if end < 0:
                return pieces
            position = end + 3
            continue
        tag = _TAG.match(markup, start + 1)
        if tag is None and markup[start + 1 : start + 2] not in ("!", "?"):
            pieces.append("<")
            position = start + 1
            continue
        end = markup.find(">", start)
        if end < 0:
            return pieces
        position = end + 1
        name = tag[1].lower() if tag is not None else ""
        if name in _BREAKS:
            pieces.append("\n")
        if name in _HIDDEN and markup[start + 1] != "/":
            position = small.find(f"</{name}", position)
            if position < 0:
                return pieces
    return [*pieces, markup[position:]]
