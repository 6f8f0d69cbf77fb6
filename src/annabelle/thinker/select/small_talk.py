"""Recognises messages that only greet, thank or remark, in several languages (small_talk.toml)."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from annabelle.toolbox.ranking.words import folded

_FILE = Path(__file__).with_name("small_talk.toml")
_LONGEST = 120
_WORD = re.compile(r"[^\W_]+")

Talk = Literal["small_talk", "assent"]


@dataclass(frozen=True, slots=True)
class _Phrases:
    said: frozenset[tuple[str, ...]]
    assent: frozenset[tuple[str, ...]]
    fillers: frozenset[str]
    longest: int


def talk_of(text: str) -> Talk | None:
    """What kind of small talk a whole message is; None when anything in it may be a request."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    found = _split(text)
    if not found:
        return "small_talk" if all(_says_nothing(sign) for sign in text) else None
    phrases = _phrases()
    kinds: list[Talk] = []
    start = 0
    while start < len(found):
        length = next(
            (size for size in range(phrases.longest, 0, -1) if found[start : start + size] in phrases.said), 0
        )
        if length:
            assent = found[start : start + length] in phrases.assent
            kinds.append("assent" if assent else "small_talk")
        elif found[start] not in phrases.fillers:
            return None
        start += length or 1
    if not kinds:
        return None
    return "assent" if "assent" in kinds else "small_talk"


def _says_nothing(sign: str) -> bool:
    """Emoji, their parts, punctuation and space."""
    return unicodedata.category(sign)[0] in "SPZMC"


@cache
def _phrases() -> _Phrases:
    lists: dict[str, list[str]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    split = {key: [_split(text) for text in texts] for key, texts in lists.items()}
    said = frozenset(phrase for key, phrases in split.items() if key != "fillers" for phrase in phrases)
    fillers = frozenset(word for phrase in split["fillers"] for word in phrase)
    return _Phrases(said, frozenset(split["assent"]), fillers, max(len(phrase) for phrase in said))


def _split(text: str) -> tuple[str, ...]:
    found: list[str] = _WORD.findall(folded(text).lower())
    return tuple(found)
