"""The words of a text that something can be found by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_WORD = re.compile(r"\w+")
_LEAST_LETTERS: Final = 3
# Words that stand in every question. Small on purpose: a wrong one here hides a conversation.
_COMMON: Final = frozenset(
    {
        "about", "and", "are", "but", "can", "did", "does", "for", "from", "had", "has", "have", "her", "him", "his",
        "how", "into", "its", "not", "our", "out", "said", "she", "talk", "tell", "that", "the", "their", "them",
        "then", "there", "they", "this", "was", "were", "what", "when", "where", "which", "who", "why", "will", "with",
        "would", "you", "your",
    }
)  # fmt: skip


def words(text: str) -> list[str]:
    """Each once, in their order; short ones only when they hold a digit."""
    found = (word for word in _WORD.findall(text.lower()) if word not in _COMMON)
    return list(dict.fromkeys(word for word in found if len(word) >= _LEAST_LETTERS or any(map(str.isdigit, word))))


def share(wanted: Iterable[str], text: str) -> float:
    """Which part of the wanted words stands in a text, also at the beginning of longer ones."""
    asked = list(wanted)
    if not asked:
        return 0.0
    known = set(_WORD.findall(text.lower()))
    return sum(_stands(word, known) for word in asked) / len(asked)


def _stands(word: str, known: set[str]) -> bool:
    return word in known or (len(word) > _LEAST_LETTERS and any(other.startswith(word) for other in known))
