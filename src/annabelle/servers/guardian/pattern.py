"""A family of phrases, and how to see quickly that a text holds none of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from annabelle.core.trust import ThreatType


@dataclass(frozen=True, slots=True)
class Pattern:
    """One family, to be searched in lower case. `signs`: one of them stands in every text that can match; `words`: one
    of them does, as a word of its own. Either is quick to see."""

    name: str
    kind: ThreatType
    words: frozenset[str]
    signs: tuple[str, ...]
    expression: re.Pattern[str]


def pattern(name: str, kind: ThreatType, signs: str, *expressions: str) -> Pattern:
    """`signs` are separated by bars; one that begins with = is a word of its own."""
    whole = "|".join(f"(?:{one})" for one in expressions)
    lower = re.sub(r"\\.|[A-Z]", lambda sign: sign.group() if len(sign.group()) > 1 else sign.group().lower(), whole)
    parts = signs.split("|")
    words = frozenset(part[1:] for part in parts if part.startswith("="))
    return Pattern(name, kind, words, tuple(part for part in parts if not part.startswith("=")), re.compile(lower))
