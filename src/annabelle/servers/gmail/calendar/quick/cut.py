"""A sentence from which what is understood is taken out; what is left is the title."""

from __future__ import annotations

import re
from collections.abc import Iterator

_GAP = "\x1f"
_EDGES = " \t,;.:!-–—" + _GAP
_DANGLING = re.compile(r"\s+(?:on|at|from|to|until|the|by|um|am|le|el|om)(?=\s*(?:\x1f|$))", re.IGNORECASE)


class Cut:
    def __init__(self, sentence: str) -> None:
        self._text = sentence.replace(_GAP, " ")

    @property
    def text(self) -> str:
        """What nobody has taken; a gap keeps apart what did not stand together."""
        return self._text

    def all(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Every place that fits. After one is taken the text is another one: stop then, or ask again."""
        return pattern.finditer(self._text)

    def take(self, match: re.Match[str]) -> None:
        self._text = f"{self._text[: match.start()]} {_GAP} {self._text[match.end() :]}"

    def take_phrase(self, phrase: str) -> None:
        self._text = self._text.replace(phrase, f" {_GAP} ", 1)

    def rest(self) -> str:
        """What is left, without words that pointed to what was taken."""
        left = _DANGLING.sub(" ", self._text)
        return " ".join(left.replace(_GAP, " ").split()).strip(_EDGES)
