"""The pieces of a long text that get a vector each: the mean of a whole page means nothing in particular."""

from __future__ import annotations

import re

from annabelle.store.memory.owner import Kind

PIECE_CHARACTERS = 120
MOST_PIECES = 8
READ_CHARACTERS = 20_000
"""A longer text is found by its beginning only."""

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")


def passages(kind: Kind, text: str) -> list[str]:
    """What is embedded for a row, at least one text: a fact as a whole, a turn in pieces of about a sentence."""
    text = text[:READ_CHARACTERS]
    if kind == "fact":
        return [text]
    room = max(PIECE_CHARACTERS, -(-len(text) // MOST_PIECES))
    pieces: list[str] = []
    for sentence in filter(None, map(str.strip, _SENTENCE_END.split(text))):
        fits = bool(pieces) and len(pieces[-1]) + len(sentence) < room
        if fits or len(pieces) == MOST_PIECES:
            pieces[-1] = f"{pieces[-1]} {sentence}"
        else:
            pieces.append(sentence)
    return pieces or [text]
