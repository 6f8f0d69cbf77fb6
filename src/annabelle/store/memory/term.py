"""A word that is looked for."""

from __future__ import annotations

from dataclasses import dataclass

AROUND_WEIGHT = 0.3
"""What a word in the surroundings of a row counts beside one in its text."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query, and in how many rows of its kind it stands, whoever owns them."""

    word: str
    frequency: int
