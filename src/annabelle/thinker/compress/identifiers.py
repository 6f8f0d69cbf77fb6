"""Finds in a text what later tool calls may need again: ids, codes, dates, addresses, amounts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

STRONG: Final = 3
MIDDLE: Final = 2
WEAK: Final = 1

_NUMBER = re.compile(r"[-+]?[$€£]?\d[\d.,]*%?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_TIME = re.compile(r"(?:\d{4}-\d{2}-\d{2}[T ])?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?")
_AMOUNT_KEY = re.compile(r"price|amount|cost|total|balance|sum|fee|paid", re.I)
_CODE = re.compile(r"[A-Z]{2,6}")
_ID_KEY = re.compile(r"(?:^|_|-|\b)(?:ids?|uuid|number|no|code|key|ref(?:erence)?|sku|email|phone|url|path)$", re.I)
_WORD = re.compile(r"(?:[^\s,;\"'`<>()\[\]{}|*=]|(?<=\d),(?=\d{3}\b))+")
_TRAILING = ".:!?…"
_SHORT_VALUE: Final = 48
_LONGEST: Final = 120


def weight(value: str, key: str = "") -> int:
    """How likely a value is asked for again: 0 for prose, 3 for what can only be an identifier."""
    return _weight(value, key) if value and len(value) <= _LONGEST else 0


# Only short values come here: long ones would fill the memory with what tools returned.
@lru_cache(maxsize=10_000)
def _weight(value: str, key: str) -> int:
    if value.isalpha() and not value.isupper():  # most words: only their key can make them more than a word
        return STRONG if _ID_KEY.search(_snake(key)) else WEAK if len(value) <= _SHORT_VALUE else 0
    if _TIME.fullmatch(value):
        return WEAK
    if _NUMBER.fullmatch(value) and sum(map(str.isdigit, value)) < 3 and not _AMOUNT_KEY.search(key):
        return WEAK if _ID_KEY.search(_snake(key)) else 0
    spaced = any(sign.isspace() for sign in value)
    if not spaced and (_ID_KEY.search(_snake(key)) or _is_identifier(value)):
        return STRONG
    if _DATE.fullmatch(value) or _CODE.fullmatch(value) or (not spaced and "_" in value):
        return MIDDLE
    return WEAK if len(value) <= _SHORT_VALUE and value.count(" ") <= 3 else 0


def identifiers(text: str) -> list[str]:
    """The words of a text that may be needed again, each once, in their order."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(text):
        word = match[0].strip(_TRAILING)
        # Two capitals in a sentence are AM, OK or TV far more often than a code.
        if (len(word) > 2 and weight(word) >= MIDDLE) or (_NUMBER.fullmatch(word) and len(word) > 2):
            found.setdefault(word)
    return list(found)


def _is_identifier(value: str) -> bool:
    """Letters with digits, an address, a path; not a plain number, which is an amount as often as an id."""
    if "@" in value or "://" in value or value.startswith(("#", "/", "~/")):
        return len(value) > 2
    if _DATE.fullmatch(value):
        return False
    digits = sum(sign.isdigit() for sign in value)
    if _NUMBER.fullmatch(value):
        return digits >= 6
    return digits > 0 and len(value) > 2


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
