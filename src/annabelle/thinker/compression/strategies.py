"""Compression strategies (CMP-03). All are pure: the same messages give the same result.

The result is always a valid chain and never longer than the input. The goal stays the same object; the user's first
message, open calls and unanswered questions stay (CMP-07).
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pydantic_ai.messages import ModelMessage, ModelRequest

from annabelle.core.contract import ThinkingStrategy
from annabelle.llm.token_estimate import estimate_tokens
from annabelle.thinker.compression.abbreviation import AbbreviationDegree
from annabelle.thinker.compression.conversation_draft import ConversationDraft, CountTokens, split_into_blocks
from annabelle.thinker.compression.message_text import render_messages

if TYPE_CHECKING:
    from annabelle.embeddings.embedder import Embedder


Relevance = Callable[[Sequence[str], str], list[float]]
"""Scores texts from 0 to 1 by their relevance to a question."""

_WORD = re.compile(r"\w{2,}")
_EMBEDDED_CHARS: Final = 2_000
_BY_MEANING: Final = 0.7


def score_by_words(texts: Sequence[str], question: str) -> list[float]:
    """By words shared with the question, rare words weighing more; 1 for the best text."""
    bags = [set(_split_words(text)) for text in texts]
    seen = Counter(word for bag in bags for word in bag)
    asked = {word: math.log(1 + len(texts) / seen[word]) for word in set(_split_words(question)) if word in seen}
    scores = [sum(value for word, value in asked.items() if word in bag) for bag in bags]
    most = max(scores, default=0.0) or 1.0
    return [score / most for score in scores]


async def make_meaning_relevance(embedder: Embedder, texts: Sequence[str], question: str) -> Relevance:
    """A relevance by vectors of these texts and by words; other texts are scored by words alone.

    Raises what the embedder raises.
    """
    vectors = await embedder.embed([text[:_EMBEDDED_CHARS] for text in texts])
    asked = (await embedder.embed([question[-_EMBEDDED_CHARS:]], query=True))[0]
    close = {text: max(0.0, float(vector @ asked)) for text, vector in zip(texts, vectors, strict=True)}

    def score_mixed(pieces: Sequence[str], about: str) -> list[float]:
        words = score_by_words(pieces, about)
        return [
            _BY_MEANING * close[piece] + (1 - _BY_MEANING) * word if piece in close else word
            for piece, word in zip(pieces, words, strict=True)
        ]

    return score_mixed


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


TARGET_SHARE: Final = 0.75
"""Share of the budget to fill, so that the next step does not have to compress again."""
_LEAST_SHARE: Final = 0.4
_SUMMARY_SHARE: Final = 0.35
_FEWEST_SUMMARY: Final = 150
_RECENCY: Final = 0.4
_LATEST: Final = 3


@dataclass(frozen=True, slots=True)
class CompressionMeasures:
    """How a strategy measures size and relevance."""

    count: CountTokens = estimate_tokens
    relevance: Relevance = score_by_words


class CompressionStrategy(Protocol):
    """Returns the messages unchanged if they fit the budget."""

    def compress(
        self, messages: Sequence[ModelMessage], goal: ModelRequest, budget: int, gauge: CompressionMeasures
    ) -> list[ModelMessage]: ...


class _BaseStrategy(ABC):
    """What all strategies share: messages that fit stay unchanged."""

    def compress(
        self, messages: Sequence[ModelMessage], goal: ModelRequest, budget: int, gauge: CompressionMeasures
    ) -> list[ModelMessage]:
        draft = ConversationDraft(split_into_blocks(messages, goal), gauge.count)
        target = _target_size(draft, budget)
        if draft.size <= budget:
            return draft.render(draft.size)
        self._reduce(draft, target, _BlockOrder(draft, goal, gauge))
        return draft.render(max(target, min(budget, draft.size + _FEWEST_SUMMARY)))

    @abstractmethod
    def _reduce(self, draft: ConversationDraft, target: int, order: _BlockOrder) -> None:
        """Reduce the draft to the target, as far as possible."""


def _target_size(draft: ConversationDraft, budget: int) -> int:
    """A share of the budget; if frozen blocks take most of it, these and a share of the rest."""
    frozen = sum(draft.size_of(place) for place, block in enumerate(draft.blocks) if block.frozen)
    return max(int(budget * TARGET_SHARE), frozen + int((budget - frozen) * _LEAST_SHARE))


class _BlockOrder:
    """The order in which blocks are reduced."""

    def __init__(self, draft: ConversationDraft, goal: ModelRequest, gauge: CompressionMeasures) -> None:
        self._draft, self._gauge = draft, gauge
        # The goal and the latest block.
        self._about = "\n".join([render_messages([goal]), draft.block_text(len(draft.blocks) - 1)])

    def oldest(self) -> list[int]:
        return [place for place in self._draft.kept_blocks() if not self._draft.blocks[place].frozen]

    def least_relevant(self) -> list[int]:
        """By relevance to the goal and by age."""
        places = self.oldest()
        scores = self._gauge.relevance([self._draft.block_text(place) for place in places], self._about)
        last = max(1, len(self._draft.blocks) - 1)
        worth = {
            place: (1 - _RECENCY) * score + _RECENCY * place / last for place, score in zip(places, scores, strict=True)
        }
        return sorted(places, key=lambda place: (worth[place], place))


class SlidingWindow(_BaseStrategy):
    """Keeps the latest blocks verbatim and summarises the others."""

    def _reduce(self, draft: ConversationDraft, target: int, order: _BlockOrder) -> None:
        _drop_blocks(draft, target, order.oldest())
        _abbreviate_fixed(draft, target, order)


class Semantic(_BaseStrategy):
    """Keeps what is relevant to the goal and summarises the rest."""

    def _reduce(self, draft: ConversationDraft, target: int, order: _BlockOrder) -> None:
        _apply_until(
            draft,
            target,
            order.least_relevant(),
            lambda place: draft.abbreviate_results(place, AbbreviationDegree.COMPACT),
        )
        _drop_blocks(draft, target, order.least_relevant())
        _abbreviate_fixed(draft, target, order)


class TokenBudget(_BaseStrategy):
    """Abbreviates all blocks, the oldest most, before any is dropped."""

    def _reduce(self, draft: ConversationDraft, target: int, order: _BlockOrder) -> None:
        _abbreviate_blocks(draft, target, order.oldest())
        _drop_blocks(draft, target, order.oldest())
        _abbreviate_fixed(draft, target, order)


class Adaptive(_BaseStrategy):
    """By pressure: abbreviates old results first, then less relevant blocks, and summarises last."""

    def _reduce(self, draft: ConversationDraft, target: int, order: _BlockOrder) -> None:
        old = [place for place in order.oldest() if place < len(draft.blocks) - _LATEST]
        _apply_until(draft, target, old, lambda place: draft.abbreviate_results(place, AbbreviationDegree.COMPACT))
        _apply_until(draft, target, old, lambda place: draft.abbreviate_results(place, AbbreviationDegree.PRUNED))
        _abbreviate_blocks(draft, target, order.least_relevant())
        _drop_blocks(draft, target, order.least_relevant())
        _abbreviate_fixed(draft, target, order)


STRATEGIES: Final[dict[ThinkingStrategy, CompressionStrategy]] = {
    "adaptive": Adaptive(),
    "sliding-window": SlidingWindow(),
    "semantic": Semantic(),
    "token-budget": TokenBudget(),
}


def _apply_until(draft: ConversationDraft, target: int, places: Sequence[int], change: Callable[[int], None]) -> None:
    """Apply the change to one block after the other until the target is reached."""
    for place in places:
        if draft.size <= target:
            return
        change(place)


def _abbreviate_blocks(draft: ConversationDraft, target: int, places: Sequence[int]) -> None:
    latest = len(draft.blocks) - 1
    for degree in (AbbreviationDegree.COMPACT, AbbreviationDegree.PRUNED, AbbreviationDegree.NEEDED):
        _apply_until(
            draft,
            target,
            [p for p in places if p != latest],
            lambda place, at=degree: draft.abbreviate_results(place, at),
        )
        _apply_until(
            draft,
            target,
            [p for p in places if p != latest],
            lambda place, at=degree: draft.abbreviate_words(place, at),
        )


def _drop_blocks(draft: ConversationDraft, target: int, places: Sequence[int]) -> None:
    """Drop blocks until the rest fits together with a summary."""
    if draft.size <= target:
        return
    fixed = sum(draft.size_of(place) for place in draft.kept_blocks() if draft.blocks[place].fixed)
    reserve = max(_FEWEST_SUMMARY, int((target - fixed) * _SUMMARY_SHARE))
    _apply_until(draft, target - reserve, places, draft.drop)


def _abbreviate_fixed(draft: ConversationDraft, target: int, order: _BlockOrder) -> None:
    """Abbreviate blocks that may not be dropped, as a last resort."""
    for degree in (AbbreviationDegree.COMPACT, AbbreviationDegree.PRUNED, AbbreviationDegree.NEEDED):
        _apply_until(draft, target, order.oldest(), lambda place, at=degree: draft.abbreviate_results(place, at))
    _apply_until(draft, target, order.oldest(), lambda place: draft.abbreviate_words(place, AbbreviationDegree.COMPACT))
