"""Text as it reads, without the disguises Unicode offers, and where each character of it stood."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

# Joiners, directional marks, soft hyphens, accents set on top: nothing that changes which letter or digit it is.
_UNSEEN = {"Cf", "Cc", "Mn", "Me"}
_LINES = {"\t", "\n", "\r"}
_PLAIN = str.maketrans("‐‑‒–—−’‘“”„«»・", '------\'\'""""" ')


@dataclass(frozen=True, slots=True)
class Folded:
    """The plain spelling of a text, with the way back to the original."""

    text: str
    _positions: tuple[int, ...] | None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of the plain text stands in the original, the unseen characters within it included."""
        if self._positions is None:
            return start, end
        return self._positions[start], self._positions[end - 1] + 1


def fold(text: str) -> Folded:
    """Full-width, styled and accented characters become plain ones, digits of every script 0 to 9; unseen ones go."""
    if text.isascii() and text.isprintable():
        return Folded(text, None)
    known: dict[str, str] = {}
    pieces: list[str] = []
    positions: list[int] = []
    for position, character in enumerate(text):
        if (plain := known.get(character)) is None:
            plain = known[character] = _plain(character)
        pieces.append(plain)
        positions.extend([position] * len(plain))
    return Folded("".join(pieces), tuple(positions))


def _plain(character: str) -> str:
    if character in _LINES or (character.isascii() and character.isprintable()):
        return character
    kept = (one for one in unicodedata.normalize("NFKD", character) if unicodedata.category(one) not in _UNSEEN)
    return "".join(_one(letter) for letter in "".join(kept).translate(_PLAIN))


def _one(letter: str) -> str:
    if letter.isspace():
        return " "
    digit = unicodedata.decimal(letter, None)
    return letter if digit is None else str(digit)
