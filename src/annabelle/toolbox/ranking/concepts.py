"""What a text is about, whatever words it uses: `inbox` and `Posteingang` both mean mail (concepts.toml)."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annabelle.toolbox.ranking.fields import ToolFields
from annabelle.toolbox.ranking.words import folded, stem

Scores = NDArray[np.float32]

_FILE = Path(__file__).with_name("concepts.toml")
_LONGEST_PHRASE = 3
_FULL, _HINT, _INSIDE = 0.6, 0.3, 0.8
"""How sure one word makes us: one of the concept's own, one that only hints at it, one found inside other letters."""
_IN_NAME, _IN_DESCRIPTION, _IN_PARAMETERS = 1.0, 0.7, 0.25
_LEAST_LENGTH = 2.0
_SHORTEST_BEGINNING = 5
"""Letters of a word in Latin script that stand for all its endings."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Which words mean which concept: in tools, in messages, and inside texts that have no spaces."""

    size: int
    of_tools: dict[str, tuple[int, ...]]
    of_messages: dict[str, tuple[tuple[int, float], ...]]
    beginnings: dict[str, tuple[int, ...]]
    inside: tuple[tuple[str, int], ...]

    def of_message(self, found: Sequence[str], text: str) -> tuple[Scores, bool]:
        """How sure each concept is meant, and whether words of another language say so."""
        doubt = np.ones(self.size, np.float32)
        elsewhere: set[int] = set()
        for key in sorted(set(_phrases(found))):
            for concept, sure in self.of_messages.get(key, ()):
                doubt[concept] *= 1 - sure
        for word in set(found):
            if stem(word) in self.of_messages:
                continue  # an English word that begins like another one
            for length in range(_SHORTEST_BEGINNING, len(word) + 1):
                elsewhere.update(self.beginnings.get(word[:length], ()))
        if not text.isascii():
            elsewhere.update(concept for word, concept in self.inside if word in text)
        for concept in elsewhere:
            doubt[concept] = min(doubt[concept], 1 - _INSIDE)
        return 1 - doubt, bool(elsewhere)

    def of_tool(self, tool: ToolFields) -> Scores:
        """How much a tool is about each concept."""
        doubt = np.ones(self.size, np.float32)
        parameters = (*tool.parameters, *tool.hints)
        for found, weight in (
            (tool.name, _IN_NAME),
            (tool.description, _IN_DESCRIPTION),
            (parameters, _IN_PARAMETERS),
        ):
            counted = Counter(concept for key in _phrases(found) for concept in self.of_tools.get(key, ()))
            for concept, times in counted.items():
                doubt[concept] *= 1 - weight * (1 - 0.5**times)
        return 1 - doubt


class ConceptIndex:
    """What each of a list of tools is about, and which of them share that with a message."""

    def __init__(self, tools: Sequence[ToolFields]) -> None:
        self._vocabulary = vocabulary()
        about = np.zeros((len(tools), self._vocabulary.size), np.float32)
        for row, tool in enumerate(tools):
            about[row] = self._vocabulary.of_tool(tool)
        having = (about > 0.2).sum(axis=0)
        # A concept that every tool shares, as creating something, tells little.
        self._rarity = np.log(1 + (len(tools) - having + 0.5) / (having + 0.5)).astype(np.float32)
        about *= self._rarity
        self._about = about / np.maximum(np.linalg.norm(about, axis=1, keepdims=True), _LEAST_LENGTH)

    def scores(self, found: Sequence[str], text: str) -> tuple[Scores, bool]:
        """From 0 to 1, for the words of a message and its folded text; and whether another language was spoken."""
        meant, elsewhere = self._vocabulary.of_message(found, text)
        meant = meant * self._rarity
        length = float(np.linalg.norm(meant))
        if length <= 0:
            return np.zeros(len(self._about), np.float32), False
        return np.vecdot(self._about, meant / np.float32(length)), elsewhere


@cache
def vocabulary() -> Vocabulary:
    """The packaged concepts, read once."""
    concepts: dict[str, dict[str, str]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    of_tools: dict[str, set[int]] = defaultdict(set)
    of_messages: dict[str, dict[int, float]] = defaultdict(dict)
    beginnings: dict[str, set[int]] = defaultdict(set)
    inside: list[tuple[str, int]] = []
    for number, concept in enumerate(concepts.values()):
        for word in concept.get("hints", "").split():
            of_messages[_key(word)][number] = _HINT
        for word in concept.get("words", "").split():
            of_tools[_key(word)].add(number)
            of_messages[_key(word)][number] = _FULL
        for word in concept.get("elsewhere", "").split():
            if word.isascii() and len(word) >= _SHORTEST_BEGINNING:
                beginnings[word].add(number)
            elif word.isascii():
                of_messages[_key(word)][number] = _FULL
            else:
                inside.append((folded(word), number))
    return Vocabulary(
        len(concepts),
        {key: tuple(sorted(numbers)) for key, numbers in of_tools.items()},
        {key: tuple(sorted(numbers.items())) for key, numbers in of_messages.items()},
        {key: tuple(sorted(numbers)) for key, numbers in beginnings.items()},
        tuple(inside),
    )


def _key(word: str) -> str:
    return "_".join(stem(part) for part in word.lower().split("_"))


def _phrases(found: Iterable[str]) -> list[str]:
    """Every word, and every two and three that stand together."""
    stems = [stem(word) for word in found]
    phrases = list(stems)
    for length in range(2, _LONGEST_PHRASE + 1):
        phrases += ["_".join(stems[start : start + length]) for start in range(len(stems) - length + 1)]
    return phrases
