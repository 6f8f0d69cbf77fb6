"""How much a piece of the conversation has to do with what is asked now: by words, and by meaning where vectors are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from annabelle.embeddings.embedder import Embedder

Relevance = Callable[[Sequence[str], str], list[float]]
"""Scores from 0 to 1 for texts, about a question."""

_WORD = re.compile(r"\w{2,}")
_EMBEDDED_CHARS: Final = 2_000
_BY_MEANING: Final = 0.7


def by_words(texts: Sequence[str], question: str) -> list[float]:
    """By the question's words that a text has, each worth the more the fewer texts have it; 1 for the closest."""
    bags = [set(_words(text)) for text in texts]
    seen = Counter(word for bag in bags for word in bag)
    asked = {word: math.log(1 + len(texts) / seen[word]) for word in set(_words(question)) if word in seen}
    scores = [sum(value for word, value in asked.items() if word in bag) for bag in bags]
    most = max(scores, default=0.0) or 1.0
    return [score / most for score in scores]


async def by_meaning(embedder: Embedder, texts: Sequence[str], question: str) -> Relevance:
    """A relevance with the vectors of these texts ready, mixed with words; other texts go by words alone.

    Raises what the embedder raises: the caller has words to fall back on.
    """
    vectors = await embedder.embed([text[:_EMBEDDED_CHARS] for text in texts])
    asked = (await embedder.embed([question[-_EMBEDDED_CHARS:]], query=True))[0]
    close = {text: max(0.0, float(vector @ asked)) for text, vector in zip(texts, vectors, strict=True)}

    def mixed(pieces: Sequence[str], about: str) -> list[float]:
        words = by_words(pieces, about)
        return [
            _BY_MEANING * close[piece] + (1 - _BY_MEANING) * word if piece in close else word
            for piece, word in zip(pieces, words, strict=True)
        ]

    return mixed


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
