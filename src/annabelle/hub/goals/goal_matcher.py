"""Finds the goal that a note without one fits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.embeddings import Embedder, EmbeddingConfig, EmbeddingsUnavailable, make_embedder
from annabelle.embeddings.metering import EmbeddingMeter
from annabelle.policy.person_words import content_words, remove_pages
from annabelle.store.goals import StoredGoal, StoredNote

# Measured with the packaged vectors: pairs that belong together have 0.24 to 0.53, others 0.13 at most.
_LEAST_MEANING: Final = 0.35
_LEAST_WITH_WORD: Final = 0.2
_LEAST_SHARE: Final = 0.5
_SECONDS: Final = 1.5
_MOST_GOALS: Final = 100
_GOAL_CHARS: Final = 1_000
# The beginning, which is the summary of a page: a long text is near to nothing.
_NOTE_CHARS: Final = 200
_READ_CHARS: Final = 4_000


class GoalMatcher:
    """Compares by meaning, or by words while there are no vectors. The vectors are loaded with the first note."""

    def __init__(self, settings: Settings, home: Home, meter: EmbeddingMeter) -> None:
        self._settings, self._home, self._meter = settings, home, meter
        self._embedder: Embedder | None = None

    async def find(self, note: StoredNote, goals: Sequence[StoredGoal]) -> StoredGoal | None:
        """The goal that fits best; None if none fits well."""
        goals = goals[:_MOST_GOALS]
        if not goals:
            return None
        told = f"{note.title}\n{remove_pages(note.content[:_READ_CHARS]).strip()[:_NOTE_CHARS]}"
        words = content_words(told)
        meant = await self._score_by_meaning(told, goals)
        if meant is None:
            scored = [(_share_in_title(words, goal), _LEAST_SHARE, goal) for goal in goals]
        else:
            shared = [bool(words & content_words(_describe(goal))) for goal in goals]
            least = [_LEAST_WITH_WORD if one else _LEAST_MEANING for one in shared]
            scored = list(zip(meant, least, goals, strict=True))
        fitting = [(score, goal) for score, least, goal in scored if score >= least]
        return max(fitting, key=lambda pair: pair[0])[1] if fitting else None

    async def _score_by_meaning(self, told: str, goals: Sequence[StoredGoal]) -> list[float] | None:
        """How near each goal is to a text; None without vectors."""
        if self._embedder is None:
            config = EmbeddingConfig.from_settings(self._settings)
            self._embedder = make_embedder(config, self._home.embedding_cache, self._meter)
        try:
            async with asyncio.timeout(_SECONDS):
                made = await self._embedder.embed([told, *(_describe(goal) for goal in goals)])
        except (EmbeddingsUnavailable, TimeoutError):
            return None
        return [float(score) for score in made[1:] @ made[0]]


def _share_in_title(words: frozenset[str], goal: StoredGoal) -> float:
    title = content_words(goal.title)
    return len(words & title) / len(title) if title else 0.0


def _describe(goal: StoredGoal) -> str:
    return f"{goal.title}\n{goal.description[:_GOAL_CHARS]}"
