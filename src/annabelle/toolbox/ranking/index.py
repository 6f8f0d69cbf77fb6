"""An index of a list of tools: their words (BM25) and concepts (concepts.toml), made once per version of the list."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from annabelle.core.tools import ToolSpec
from annabelle.toolbox.ranking.words import STOP, fold_text, split_words, stem, stem_words

_TAG = re.compile(r"^\[([^\]]*)\]\s*")
_DEEPEST = 3
_MOST_PARAMETERS = 60
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class ToolFields:
    """The words of one tool by where they stand, and the two texts its vectors are made of."""

    name: tuple[str, ...]
    description: tuple[str, ...]
    parameters: tuple[str, ...]
    hints: tuple[str, ...]
    place: tuple[str, ...]
    title: str
    text: str


def extract_fields(tool: ToolSpec) -> ToolFields:
    """Its server's tag in the description is no part of what the tool says."""
    tag = _TAG.match(tool.description)
    said = fold_text(tool.description[tag.end() if tag else 0 :][:_LONGEST])
    own = split_words(fold_text(tool.original_name or tool.name))
    parameters: list[str] = []
    hints: list[str] = []
    for count, (name, hint) in enumerate(_walk_parameters(tool.input_schema, 0)):
        if count >= _MOST_PARAMETERS:
            break
        parameters += split_words(fold_text(name))
        hints += split_words(fold_text(hint))
    place = split_words(fold_text(f"{tag.group(1) if tag else ''} {tool.server} {tool.group}"))
    title = " ".join(own)
    return ToolFields(
        name=tuple(own),
        description=tuple(split_words(said)),
        parameters=tuple(parameters),
        hints=tuple(hints),
        place=tuple(dict.fromkeys(place)),
        title=title,
        text=f"{title}: {said}",
    )


def _walk_parameters(schema: object, depth: int) -> Iterator[tuple[str, str]]:
    """Names of parameters with what is said of them, also of those inside others. A schema may hold anything."""
    if depth > _DEEPEST or not isinstance(schema, dict):
        return
    properties = cast("dict[str, object]", schema).get("properties")
    if not isinstance(properties, dict):
        return
    for name, inner in cast("dict[object, object]", properties).items():
        details = cast("dict[str, object]", inner) if isinstance(inner, dict) else {}
        said, choices = details.get("description"), details.get("enum")
        texts = [said] if isinstance(said, str) else []
        if isinstance(choices, list):
            texts += [str(choice) for choice in cast("list[object]", choices)[:20]]
        yield str(name), " ".join(texts)[:_LONGEST]
        yield from _walk_parameters(details, depth + 1)
        yield from _walk_parameters(details.get("items"), depth + 1)


Scores = NDArray[np.float32]

_SATURATION = 1.2
# How much a word counts in a field, and how much a long field is held against it.
_WEIGHTS = (("name", 2.0, 0.3), ("description", 1.0, 0.6), ("parameters", 1.0, 0.6), ("hints", 0.6, 0.7))
_PLACE_WEIGHT = 0.4
_UNKNOWN = 0.6


class LexicalIndex:
    """An inverted index in arrays: for each word the tools that have it, and what it is worth there."""

    def __init__(self, tools: Sequence[ToolFields]) -> None:
        self.size = len(tools)
        weighed: list[dict[str, float]] = [{} for _ in tools]
        for field, weight, length_matters in _WEIGHTS:
            counted = [Counter(stem_words(getattr(tool, field))) for tool in tools]
            average = max(sum(sum(count.values()) for count in counted) / max(self.size, 1), 1e-9)
            for row, count in enumerate(counted):
                length = 1 - length_matters + length_matters * sum(count.values()) / average
                for term, times in count.items():
                    weighed[row][term] = weighed[row].get(term, 0.0) + weight * times / length
        for row, tool in enumerate(tools):
            for term in set(stem_words(tool.place)):
                weighed[row][term] = weighed[row].get(term, 0.0) + _PLACE_WEIGHT
        postings: dict[str, list[tuple[int, float]]] = {}
        for row, found in enumerate(weighed):
            for term, worth in found.items():
                postings.setdefault(term, []).append((row, worth))
        self._rarity: dict[str, float] = {}
        self._postings: dict[str, tuple[NDArray[np.int64], Scores]] = {}
        for term, entries in postings.items():
            rarity = math.log(1 + (self.size - len(entries) + 0.5) / (len(entries) + 0.5))
            worth = np.asarray([worth for _, worth in entries], np.float32)
            rows = np.asarray([row for row, _ in entries], np.int64)
            self._rarity[term] = rarity
            saturated = rarity * worth * (_SATURATION + 1) / (worth + _SATURATION)
            self._postings[term] = rows, saturated.astype(np.float32)

    def scores(self, asked: Iterable[str]) -> Scores:
        """What the tools are worth for these stems, each counted once."""
        found = np.zeros(self.size, np.float32)
        for term in sorted(set(asked)):
            entry = self._postings.get(term)
            if entry is not None:
                found[entry[0]] += entry[1]
        return found

    def rarity(self, term: str) -> float:
        """How much a word tells tools apart; one that no tool has says nothing of them, but it was asked for."""
        return self._rarity.get(term, _UNKNOWN * math.log(1 + self.size / 0.5))

    def ideal(self, asked: Iterable[str]) -> float:
        """What a tool is worth that has about each of these once."""
        return (_SATURATION + 1) / 2 * sum(self.rarity(term) for term in set(asked))


_FILE = Path(__file__).with_name("concepts.toml")
_LONGEST_PHRASE = 3
_FULL, _HINT, _INSIDE = 0.6, 0.3, 0.8
"""How sure one word makes us: one of the concept's own, one that only hints at it, one found inside other letters."""
_IN_NAME, _IN_DESCRIPTION, _IN_PARAMETERS = 1.0, 0.7, 0.25
_LEAST_LENGTH = 2.0
_SHORTEST_BEGINNING = 5
"""Letters of a word in Latin script that stand for all its endings."""


@dataclass(frozen=True, slots=True)
class ConceptVocabulary:
    """Which words mean which concept: in tools, in messages, and inside texts that have no spaces."""

    size: int
    tool_words: dict[str, tuple[int, ...]]
    message_words: dict[str, tuple[tuple[int, float], ...]]
    beginnings: dict[str, tuple[int, ...]]
    inside: tuple[tuple[str, int], ...]

    def score_message(self, found: Sequence[str], text: str) -> tuple[Scores, bool]:
        """How sure each concept is meant, and whether words of another language say so."""
        doubt = np.ones(self.size, np.float32)
        elsewhere: set[int] = set()
        for key in sorted(set(_phrases(found))):
            for concept, sure in self.message_words.get(key, ()):
                doubt[concept] *= 1 - sure
        for word in set(found):
            if stem(word) in self.message_words:
                continue  # an English word that begins like another one
            for length in range(_SHORTEST_BEGINNING, len(word) + 1):
                elsewhere.update(self.beginnings.get(word[:length], ()))
        if not text.isascii():
            elsewhere.update(concept for word, concept in self.inside if word in text)
        for concept in elsewhere:
            doubt[concept] = min(doubt[concept], 1 - _INSIDE)
        return 1 - doubt, bool(elsewhere)

    def score_tool(self, tool: ToolFields) -> Scores:
        """How much a tool is about each concept."""
        doubt = np.ones(self.size, np.float32)
        parameters = (*tool.parameters, *tool.hints)
        for found, weight in (
            (tool.name, _IN_NAME),
            (tool.description, _IN_DESCRIPTION),
            (parameters, _IN_PARAMETERS),
        ):
            counted = Counter(concept for key in _phrases(found) for concept in self.tool_words.get(key, ()))
            for concept, times in counted.items():
                doubt[concept] *= 1 - weight * (1 - 0.5**times)
        return 1 - doubt


class ConceptIndex:
    """What each of a list of tools is about, and which of them share that with a message."""

    def __init__(self, tools: Sequence[ToolFields]) -> None:
        self._vocabulary = load_vocabulary()
        about = np.zeros((len(tools), self._vocabulary.size), np.float32)
        for row, tool in enumerate(tools):
            about[row] = self._vocabulary.score_tool(tool)
        having = (about > 0.2).sum(axis=0)
        # A concept that every tool shares, as creating something, tells little.
        self._rarity = np.log(1 + (len(tools) - having + 0.5) / (having + 0.5)).astype(np.float32)
        about *= self._rarity
        self._about = about / np.maximum(np.linalg.norm(about, axis=1, keepdims=True), _LEAST_LENGTH)

    def scores(self, found: Sequence[str], text: str) -> tuple[Scores, bool]:
        """From 0 to 1, for the words of a message and its folded text; and whether another language was spoken."""
        meant, elsewhere = self._vocabulary.score_message(found, text)
        meant = meant * self._rarity
        length = float(np.linalg.norm(meant))
        if length <= 0:
            return np.zeros(len(self._about), np.float32), False
        return np.vecdot(self._about, meant / np.float32(length)), elsewhere


@cache
def load_vocabulary() -> ConceptVocabulary:
    """The packaged concepts, read once."""
    concepts: dict[str, dict[str, str]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    of_tools: dict[str, set[int]] = defaultdict(set)
    of_messages: dict[str, dict[int, float]] = defaultdict(dict)
    beginnings: dict[str, set[int]] = defaultdict(set)
    inside: list[tuple[str, int]] = []
    for number, concept in enumerate(concepts.values()):
        for word in concept.get("hints", "").split():
            of_messages[_stem_key(word)][number] = _HINT
        for word in concept.get("words", "").split():
            of_tools[_stem_key(word)].add(number)
            of_messages[_stem_key(word)][number] = _FULL
        for word in concept.get("elsewhere", "").split():
            if word.isascii() and len(word) >= _SHORTEST_BEGINNING:
                beginnings[word].add(number)
            elif word.isascii():
                of_messages[_stem_key(word)][number] = _FULL
            else:
                inside.append((fold_text(word), number))
    return ConceptVocabulary(
        len(concepts),
        {key: tuple(sorted(numbers)) for key, numbers in of_tools.items()},
        {key: tuple(sorted(numbers.items())) for key, numbers in of_messages.items()},
        {key: tuple(sorted(numbers)) for key, numbers in beginnings.items()},
        tuple(inside),
    )


def _stem_key(word: str) -> str:
    return "_".join(stem(part) for part in word.lower().split("_"))


def _phrases(found: Iterable[str]) -> list[str]:
    """Every word, and every two and three that stand together."""
    stems = [stem(word) for word in found]
    phrases = list(stems)
    for length in range(2, _LONGEST_PHRASE + 1):
        phrases += ["_".join(stems[start : start + length]) for start in range(len(stems) - length + 1)]
    return phrases


@dataclass(frozen=True, slots=True)
class WordEvidence:
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
        self.fields = tuple(extract_fields(tool) for tool in tools)
        self._lexical = LexicalIndex(self.fields)
        self._concepts = ConceptIndex(self.fields)

    def evidence(self, text: str) -> WordEvidence:
        """What words alone say of each tool."""
        plain = fold_text(text)
        found = split_words(plain)
        asked = stem_words(found)
        concepts, elsewhere = self._concepts.scores(found, plain)
        return WordEvidence(
            words=self._lexical.scores(asked),
            concepts=concepts,
            elsewhere=elsewhere,
            asked=self._lexical.ideal(asked),
        )

    def asked_words(self, text: str) -> list[tuple[str, float]]:
        """The words of a text that tell something, each with how much it tells tools apart."""
        found = dict.fromkeys(word for word in split_words(fold_text(text)) if word not in STOP)
        return [(word, self._lexical.rarity(stem(word))) for word in found]
