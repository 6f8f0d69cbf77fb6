"""The words of a fact that tell what it is about, in any language."""

from __future__ import annotations

from annabelle.servers.memory.search.stopwords import STOP_WORDS
from annabelle.store.memory.folding import words

# Every other fact has one of these.
_IN_EVERY_FACT = frozenset(
    ("user", "users", "likes", "like", "prefers", "prefer", "uses", "use", "wants", "want", "needs", "need", "lives",
     "works", "often", "always", "usually", "currently", "now", "since", "one", "new")
)  # fmt: skip


def keywords(text: str) -> frozenset[str]:
    """Words of more than two letters, or two of a writing where those are a word; without the common ones."""
    return frozenset(
        word
        for word in words(text)
        if len(word) > (2 if word.isascii() else 1) and word not in STOP_WORDS and word not in _IN_EVERY_FACT
    )


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the smaller set is in the other, from 0 to 1."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0
