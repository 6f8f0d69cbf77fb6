"""The part of a message that is the person's own: what they paste in is somebody else's, and gives no orders."""

from __future__ import annotations

import re
from typing import Final

_MOST: Final = 20_000
_FENCE: Final = re.compile(r"```.*?(?:```|\Z)|<<<.*?(?:>>>|\Z)|\"\"\".*?(?:\"\"\"|\Z)", re.DOTALL)
_QUOTE_LINE: Final = re.compile(r"^[^\S\n]*>.*$", re.MULTILINE)
_LONG_QUOTE: Final = re.compile(r"\"[^\"]{60,}\"|“[^”]{60,}”|«[^»]{60,}»|„[^“”]{60,}[“”]")
_RULER: Final = re.compile(r"^\s*(?:[-=_*#~]{3,}.*|-+ ?(?:forwarded|original|weitergeleitet).*)$", re.MULTILINE | re.I)
# "Summarise this mail: …": what follows is the mail. So it is below "What do you think of this?" and an empty line.
_HANDED_OVER: Final = re.compile(
    r"\b(?:this|the following|following|these|below|diese[sr]?n?|folgende\w*|ce(?:ci|t|tte)?|suivant\w*|este|esta|"
    r"siguiente\w*|ten|te|następując\w*)\b[^:\n]{0,60}(?::|\n[^\S\n]*\n)"
    # "Translate into German: …", "what I got: …": words that are worked on, or somebody else's.
    r"|\b(?:summari[sz]e|translate|proofread|paraphrase|übersetze?n?|traduis|traduire|résume|traduce|resume|przetłumacz|"
    r"podsumuj|got|received|wrote|writes|said|says|schrieb|schreibt|sagte?|écrit|dit|escribi[óo]|dice|napisała?|pisze)\b"
    r"[^:\n]{0,40}:(?=\s)",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(r"[^\S\n]*(?:[-*•]|\d{1,2}[.)])[^\S\n]+\S.{0,100}")


def own_words(text: str) -> str:
    """The text without what stands in fences, quotes and below a line, and without a text that is handed over."""
    text = _RULER.split(_LONG_QUOTE.sub(" ", _QUOTE_LINE.sub("", _FENCE.sub("\n", text[:_MOST]))), maxsplit=1)[0]
    handed_over = _HANDED_OVER.search(text)
    if handed_over is not None:
        return text[: handed_over.end()] + _items(text[handed_over.end() :])
    colon = re.search(r":[^\S\n]*\n", text)
    if colon is None:
        return text
    return text[: colon.end()] + _items(text[colon.end() :])


def _items(rest: str) -> str:
    """Of what is handed over, a list of things is still what the person says: `delete these:` and three names."""
    items: list[str] = []
    for line in rest.strip("\n").split("\n"):
        if not line.strip():
            continue
        if not _ITEM.fullmatch(line):
            break
        items.append(line)
    return "\n".join(items)
