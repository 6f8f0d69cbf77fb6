"""Finds scripts by words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from annabelle.servers.codexec.scripts.script import Script

_WORD = re.compile(r"\w+")
_WEIGHTS = (8, 5, 3, 1)
"""For a word in the name, in a tag, in the description, in the code."""


def found(scripts: Iterable[Script], query: str) -> list[Script]:
    """Scripts in which every word of the query is found somewhere, the best first."""
    words = [word.casefold() for word in _WORD.findall(query)] or [query.strip().casefold()]
    scored = [(_score(script, words), script) for script in scripts]
    best_first = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].name.casefold()))
    return [script for _, script in best_first]


def _score(script: Script, words: list[str]) -> int:
    places = [script.name, " ".join(script.tags), script.description, script.code]
    folded = [place.casefold() for place in places]
    total = 0
    for word in words:
        score = sum(weight for weight, place in zip(_WEIGHTS, folded, strict=True) if word in place)
        if not score:
            return 0
        total += score
    return total
