"""Whether a text carries out what nobody asked to be told: pieces of private content the person did not point at."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from annabelle.policy.naming import plain

_TOKEN: Final = re.compile(r"[^\s,;:!?()\[\]{}<>\"']+")
_RUN: Final = 6
_LONG: Final = 16
_DIGITS: Final = 4
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/=_-]{32,}")


def carries(texts: Iterable[str], private: Iterable[str], known: Iterable[str]) -> bool:
    """Whether something telling of the private texts stands in these ones and not in what is known anyway."""
    said = plain("\n".join(known))
    content = plain("\n".join(private))
    if not content:
        return False
    hidden, open_to_all = _telling(content), _telling(said)
    for text in texts:
        if _telling(plain(text)) & (hidden - open_to_all):
            return True
        if any(run.group().casefold() not in said for run in _ENCODED.finditer(text)):
            return True  # what can not be read may be anything
    return False


def _telling(text: str) -> frozenset[str]:
    """Numbers, addresses, long words, and runs of words that are too long to come about by chance."""
    words = [word.strip(".-'") for word in _TOKEN.findall(text)]
    single = {
        word
        for word in words
        if sum(sign.isdigit() for sign in word) >= _DIGITS or "@" in word or (len(word) >= _LONG and "/" not in word)
    }
    runs = {" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}
    return frozenset(single | runs)
