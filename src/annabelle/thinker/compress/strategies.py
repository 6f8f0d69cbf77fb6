"""Ways to make a conversation shorter (CMP-03). All are pure: the same messages give the same result.

Whatever the way: the result is a valid chain, the goal stays the very same object, the user's first message, open
calls and unanswered questions stay, and it is never longer than what came in (CMP-07).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pydantic_ai.messages import ModelMessage, ModelRequest

from annabelle.core.contract import ThinkingStrategy
from annabelle.llm.estimate import estimated_tokens
from annabelle.thinker.compress.blocks import blocks
from annabelle.thinker.compress.compact import Degree
from annabelle.thinker.compress.draft import Count, Draft
from annabelle.thinker.compress.relevance import Relevance, by_words
from annabelle.thinker.compress.texts import text_of_block

TARGET_SHARE: Final = 0.75
"""How much of the budget is filled: a conversation that just fits would have to be cut again at the next step."""
_LEAST_SHARE: Final = 0.4
_SUMMARY_SHARE: Final = 0.35
_FEWEST_SUMMARY: Final = 150
_RECENCY: Final = 0.4
_LATEST: Final = 3


@dataclass(frozen=True, slots=True)
class Gauge:
    """How a strategy measures: tokens, and what has to do with what."""

    count: Count = estimated_tokens
    relevance: Relevance = by_words


class Strategy(Protocol):
    """One way. Returns the messages as they are when they have room."""

    def compress(
        self, messages: Sequence[ModelMessage], goal: ModelRequest, budget: int, gauge: Gauge
    ) -> list[ModelMessage]: ...


class _Shortening(ABC):
    """What all ways share: nothing is done to what fits, and nothing gets longer."""

    def compress(
        self, messages: Sequence[ModelMessage], goal: ModelRequest, budget: int, gauge: Gauge
    ) -> list[ModelMessage]:
        draft = Draft(blocks(messages, goal), gauge.count)
        target = _target(draft, budget)
        if draft.size <= budget:
            return draft.finished(draft.size)
        self._work(draft, target, _Order(draft, goal, gauge))
        return draft.finished(max(target, min(budget, draft.size + _FEWEST_SUMMARY)))

    @abstractmethod
    def _work(self, draft: Draft, target: int, order: _Order) -> None:
        """Make the draft smaller until it has reached the target, as far as it can be."""


def _target(draft: Draft, budget: int) -> int:
    """A share of the budget; where what may not be touched takes most of it, a share of the rest is left for talk."""
    frozen = sum(draft.size_of(place) for place, block in enumerate(draft.blocks) if block.frozen)
    return max(int(budget * TARGET_SHARE), frozen + int((budget - frozen) * _LEAST_SHARE))


class _Order:
    """In which order blocks are given up."""

    def __init__(self, draft: Draft, goal: ModelRequest, gauge: Gauge) -> None:
        self._draft, self._gauge = draft, gauge
        # What is asked, and what the conversation came to last.
        self._about = "\n".join([text_of_block([goal]), draft.text(len(draft.blocks) - 1)])

    def oldest(self) -> list[int]:
        return [place for place in self._draft.kept() if not self._draft.blocks[place].frozen]

    def least_relevant(self) -> list[int]:
        """By what they have to do with the goal, and by age: what was said last is seldom beside the point."""
        places = self.oldest()
        scores = self._gauge.relevance([self._draft.text(place) for place in places], self._about)
        last = max(1, len(self._draft.blocks) - 1)
        worth = {
            place: (1 - _RECENCY) * score + _RECENCY * place / last for place, score in zip(places, scores, strict=True)
        }
        return sorted(places, key=lambda place: (worth[place], place))


class SlidingWindow(_Shortening):
    """Keeps the latest blocks word by word, and sums up what was before them."""

    def _work(self, draft: Draft, target: int, order: _Order) -> None:
        _drop(draft, target, order.oldest())
        _at_last(draft, target, order)


class Semantic(_Shortening):
    """Keeps what has to do with the goal, and sums up the rest."""

    def _work(self, draft: Draft, target: int, order: _Order) -> None:
        _each(draft, target, order.least_relevant(), lambda place: draft.results_at(place, Degree.COMPACT))
        _drop(draft, target, order.least_relevant())
        _at_last(draft, target, order)


class TokenBudget(_Shortening):
    """Shortens everything a little, the oldest most, before anything is dropped."""

    def _work(self, draft: Draft, target: int, order: _Order) -> None:
        _shorten(draft, target, order.oldest())
        _drop(draft, target, order.oldest())
        _at_last(draft, target, order)


class Adaptive(_Shortening):
    """Goes by the pressure: a little off old results first, then off what is beside the point, and a summary last."""

    def _work(self, draft: Draft, target: int, order: _Order) -> None:
        old = [place for place in order.oldest() if place < len(draft.blocks) - _LATEST]
        _each(draft, target, old, lambda place: draft.results_at(place, Degree.COMPACT))
        _each(draft, target, old, lambda place: draft.results_at(place, Degree.PRUNED))
        _shorten(draft, target, order.least_relevant())
        _drop(draft, target, order.least_relevant())
        _at_last(draft, target, order)


STRATEGIES: Final[dict[ThinkingStrategy, Strategy]] = {
    "adaptive": Adaptive(),
    "sliding-window": SlidingWindow(),
    "semantic": Semantic(),
    "token-budget": TokenBudget(),
}


def _each(draft: Draft, target: int, places: Sequence[int], change: Callable[[int], None]) -> None:
    """One change after the other, until it is enough."""
    for place in places:
        if draft.size <= target:
            return
        change(place)


def _shorten(draft: Draft, target: int, places: Sequence[int]) -> None:
    latest = len(draft.blocks) - 1
    for degree in (Degree.COMPACT, Degree.PRUNED, Degree.NEEDED):
        _each(draft, target, [p for p in places if p != latest], lambda place, at=degree: draft.results_at(place, at))
        _each(draft, target, [p for p in places if p != latest], lambda place, at=degree: draft.words_at(place, at))


def _drop(draft: Draft, target: int, places: Sequence[int]) -> None:
    """Blocks go until the rest has room together with a summary of them."""
    if draft.size <= target:
        return
    fixed = sum(draft.size_of(place) for place in draft.kept() if draft.blocks[place].fixed)
    reserve = max(_FEWEST_SUMMARY, int((target - fixed) * _SUMMARY_SHARE))
    _each(draft, target - reserve, places, draft.drop)


def _at_last(draft: Draft, target: int, order: _Order) -> None:
    """What may not go is shortened, when all else was not enough."""
    for degree in (Degree.COMPACT, Degree.PRUNED, Degree.NEEDED):
        _each(draft, target, order.oldest(), lambda place, at=degree: draft.results_at(place, at))
    _each(draft, target, order.oldest(), lambda place: draft.words_at(place, Degree.COMPACT))
