"""Whether a statement is made of words that were really said; what follows decides how far it is trusted."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

_WORD = re.compile(r"\w+(?:[.@:/+-]+\w+)*")
_SPACE = re.compile(r"\s+")
_STEM_LETTERS = 4
_SHORTEST_WORD = 4
_SHORTEST_QUOTE_BYTES = 6
# Words a note about somebody is made of, whatever was said.
_FRAME = frozenset(
    re.findall(
        r"\w+",
        "user users person their they them that this with from have has been being were will would should about into "
        "also very when which what where who whose does done likes wants prefers named called",
    )
)


def plain(text: str) -> str:
    """The text as it is compared: one form of each character, one space, no case, no quotation marks."""
    text = unicodedata.normalize("NFKC", html.unescape(text)).casefold()
    for mark in "\"'`´‘’‚“”„«»…":
        text = text.replace(mark, "")
    return _SPACE.sub(" ", text).strip(" .,;:!?-–—")


def stands_in(quote: str, text: str) -> bool:
    """Whether these very words stand in the text; a quote of almost nothing stands nowhere."""
    wanted = plain(quote)
    # By bytes: three signs of Chinese say as much as three words.
    said = "".join(character for character in wanted if character.isalnum())
    if len(said.encode(errors="replace")) < _SHORTEST_QUOTE_BYTES and wanted != plain(text):
        return False
    return bool(wanted) and wanted in plain(text)


def backed_by(statement: str, sources: Iterable[str]) -> bool:
    """Whether the statement says nothing but what the sources say, as far as words can tell.

    Every number, address and link in it must stand there, and at least half of its other words, by their first letters.
    """
    said = plain("\n".join(sources))
    stems = {word[:_STEM_LETTERS] for word in _words(said)}
    wanted = [word for word in _words(plain(statement)) if word not in _FRAME]
    exact = [word for word in wanted if any(c.isdigit() or c in "@:/" for c in word)]
    if any(word not in said for word in exact):
        return False
    usual = [word for word in wanted if len(word) >= _SHORTEST_WORD and word not in exact]
    found = sum(word[:_STEM_LETTERS] in stems for word in usual)
    return found * 2 >= len(usual)


def _words(text: str) -> list[str]:
    return _WORD.findall(text)
