"""Whether a text carries out what nobody asked to be told: pieces of private content the person did not point at."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from annabelle.policy.naming import plain

_BETWEEN: Final = re.compile(r"[\s,;:!?()\[\]{}<>\"']+|[.'-]+(?=\s|$)")
_RUN: Final = 6
_LONG: Final = 16
_DIGITS: Final = 4
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/=_-]{32,}")


def carries(texts: Iterable[str], private: Iterable[str], known: Iterable[str]) -> bool:
    """Whether something telling of the private texts stands in these ones and not in what is known anyway."""
    content = _words(private)
    if not content.strip():
        return False
    said: str | None = None
    for text in texts:
        telling = [piece for piece in _telling(text) if f" {piece} " in content]
        encoded = [found.group().casefold() for found in _ENCODED.finditer(text)]
        if telling or encoded:
            said = said if said is not None else _words(known)
            # What can not be read may be anything.
            if any(f" {piece} " not in said for piece in telling) or any(piece not in said for piece in encoded):
                return True
    return False


def _words(texts: Iterable[str]) -> str:
    """The words alone, one blank between them."""
    return f" {_BETWEEN.sub(' ', plain(chr(10).join(texts)))} "


def _telling(text: str) -> set[str]:
    """Numbers, addresses, long words, and runs of words that are too long to come about by chance."""
    words = _words([text]).split()
    single = {
        word
        for word in words
        if sum(sign.isdigit() for sign in word) >= _DIGITS or "@" in word or (len(word) >= _LONG and "/" not in word)
    }
    return single | {" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}
