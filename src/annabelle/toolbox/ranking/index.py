"""Everything about a list of tools that does not depend on what is asked, made once per version of the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annabelle.core.tools import ToolSpec
from annabelle.toolbox.ranking.concepts import ConceptIndex
from annabelle.toolbox.ranking.fields import fields_of
from annabelle.toolbox.ranking.lexical import LexicalIndex
from annabelle.toolbox.ranking.words import STOP, folded, stem, terms, words

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found for a text, per tool."""

    words: Scores
    concepts: Scores
    elsewhere: bool
    """Words of another language were understood as concepts."""
    asked: float
    """What a tool would be worth that has every word of the text."""


class ToolIndex:
    """The words and concepts of a list of tools."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.names = tuple(tool.name for tool in tools)
        self.fields = tuple(fields_of(tool) for tool in tools)
        self._lexical = LexicalIndex(self.fields)
        self._concepts = ConceptIndex(self.fields)

    def evidence(self, text: str) -> Evidence:
        """What words alone say of each tool."""
        plain = folded(text)
        found = words(plain)
        asked = terms(found)
        concepts, elsewhere = self._concepts.scores(found, plain)
        return Evidence(
            words=self._lexical.scores(asked),
            concepts=concepts,
            elsewhere=elsewhere,
            asked=self._lexical.ideal(asked),
        )

    def asked_words(self, text: str) -> list[tuple[str, float]]:
        """The words of a text that tell something, each with how much it tells tools apart."""
        found = dict.fromkeys(word for word in words(folded(text)) if word not in STOP)
        return [(word, self._lexical.rarity(stem(word))) for word in found]
