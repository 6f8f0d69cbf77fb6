"""Text into words that can be compared: folded, split where names are glued together, and stemmed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

LONGEST = 4_000
"""Characters of a message that are looked at; what it asks for stands at its beginning or its end."""

_CHUNK = re.compile(r"[^\W_]+")
_PIECE = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_GLUED = 20
# Letters that are no base letter with a mark, so that folding alone leaves them as they are.
_LETTERS = str.maketrans({"ł": "l", "Ł": "L", "ß": "ss", "ø": "o", "Ø": "O", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})
_EVERYWHERE = """
a an the of to in on for and or is are was were be been it its this that with as at by from my me i you your we our us
can could would will should please do does did have has had if any some there what which who whom how when where why so
just like need want help tell give im id ive let lets also not no than then them they their he she his her into about up
out s t m re ve ll d
"""
STOP = frozenset(_EVERYWHERE.split())
_SUFFIXES = (
    ("ational", "ate"), ("ization", "ize"), ("fulness", "ful"), ("iveness", "ive"), ("ations", "ate"), ("ation", "ate"),
    ("ments", "ment"), ("ities", "ity"), ("ies", "y"), ("sses", "ss"), ("ings", ""), ("ing", ""), ("edly", ""),
    ("ed", ""), ("ers", "er"), ("ly", ""),
)  # fmt: skip


def clip_text(text: str) -> str:
    """The text, or the beginning and the end of a long one."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} {text[-LONGEST // 2 :]}"


def fold_text(text: str) -> str:
    """Without accents, and without signs that are not seen: zero-width ones and those that turn the direction."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    kept = "".join(sign for sign in plain if unicodedata.category(sign) not in ("Mn", "Cf", "Cs"))
    # What belongs together again where a script is written in parts, as Korean is.
    return kept if kept.isascii() else unicodedata.normalize("NFC", kept)


def split_words(text: str) -> list[str]:
    """The words of a folded text: `getUserInfo` gives get, user and info, `GitHub` also github."""
    found: list[str] = []
    for chunk in _CHUNK.findall(text):
        pieces = _PIECE.findall(chunk)
        found += [piece.lower() for piece in pieces]
        if len(pieces) > 1 and len(chunk) <= _GLUED and chunk.isalpha():
            found.append(chunk.lower())
    return found


def stem_words(found: Iterable[str]) -> list[str]:
    """What is compared of these words: stems, without the words that are in every sentence."""
    return [stem(word) for word in found if word not in STOP]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The part of an English word that its forms share, cut the same way wherever it stands."""
    if len(word) <= 3 or not word.isascii():
        return word
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)] + instead
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    if len(word) > 4 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 4 and word.endswith(("or", "er")):
        word = word[:-2]
    if len(word) > 3 and word.endswith("y"):
        word = word[:-1] + "i"
    return word
