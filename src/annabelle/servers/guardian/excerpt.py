"""Keeps a scan bounded: of texts that are too long together, what is looked at and what is said to be left out.

Beginning and end are read, pieces from all over the rest, and wherever a word stands that attacks are made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

BUDGET: Final = 400_000
"""Characters that are looked at in one scan."""
_EDGE: Final = 60_000
_PIECE: Final = 1_200
_MOST_CALLED: Final = 120
_CALLS: Final = (
    "ignore", "instruction", "system prompt", "you are now", "assistant", "password", "do not tell", "<!--", "as an ai",
    "api key", "language model", "important!!", "curl ", "base64",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Excerpt:
    """As many texts as there were, shortened where they had to be."""

    texts: list[str]
    unscanned: str | None


def excerpt(texts: list[str], left_out_fields: int) -> Excerpt:
    """The texts themselves while they fit the budget; else each gets its share of it."""
    total = sum(len(text) for text in texts)
    if total <= BUDGET:
        said = f"{left_out_fields} more fields were not looked at." if left_out_fields else None
        return Excerpt(texts, said)
    share = _share(sorted(len(text) for text in texts), BUDGET)
    kept = [text if len(text) <= share else _sample(text, share) for text in texts]
    missing = total - sum(len(text) for text in kept)
    fields = f" and {left_out_fields} more fields" if left_out_fields else ""
    return Excerpt(kept, f"{missing} of {total} characters{fields} were not looked at.")


def _share(lengths: list[int], budget: int) -> int:
    """How long a text may be so that all fit: short ones are kept whole and leave their rest to the others."""
    for place, length in enumerate(lengths):
        share = budget // (len(lengths) - place)
        if length > share:
            return share
        budget -= length
    return budget


def _sample(text: str, share: int) -> str:
    """Parts of a long text, in their order."""
    edge = min(_EDGE, share // 3)
    spans = [(0, edge), (len(text) - edge, len(text))]
    pieces = max(1, (share - 2 * edge) // _PIECE)
    called = sorted(set(_called(text)))[: min(_MOST_CALLED, pieces // 2)]
    spans += [(max(0, place - _PIECE // 2), place + _PIECE // 2) for place in called]
    evenly = max(1, pieces - len(called))
    stride = max(1, (len(text) - 2 * edge) // evenly)
    spans += [(start, start + _PIECE) for start in range(edge, len(text) - edge, stride)][:evenly]
    return "\n".join(text[start:end] for start, end in _merged(sorted(spans)))


def _called(text: str) -> Iterator[int]:
    low = text.lower()
    for word in _CALLS:
        place = low.find(word)
        for _ in range(_MOST_CALLED // 4):
            if place < 0:
                break
            yield place
            place = low.find(word, place + _PIECE)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
