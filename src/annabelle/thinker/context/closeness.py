"""How close earlier exchanges are in meaning to the message at hand (CTX-02)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from annabelle.embeddings import Embedder, EmbeddingsUnavailable
from annabelle.thinker.session.records import TurnRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)
_SECONDS = 1.0
_KEPT = 2_000
_CHARS = 1_000
"""Of a question, and of an answer: what they are about is said early."""


class Closeness:
    """Vectors of exchanges are made once and kept: an exchange never changes. One per thinker."""

    def __init__(self, embedder: Embedder, seconds: float = _SECONDS) -> None:
        self._embedder, self._seconds = embedder, seconds
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._working: asyncio.Task[dict[str, float]] | None = None

    async def to(self, text: str, turns: Sequence[TurnRecord]) -> dict[str, float] | None:
        """The cosine for each turn by message id; None when there are no vectors now, or none in time.

        A provider that is too slow for this turn is left to finish: what it makes is there for the next one. Until it
        has, nobody waits for it again.
        """
        if self._working is not None and not self._working.done():
            return None
        self._working = asyncio.create_task(self._compare(text, turns))
        await asyncio.wait({self._working}, timeout=self._seconds)
        if not self._working.done():
            return None
        try:
            return self._working.result()
        except EmbeddingsUnavailable:
            return None

    async def _compare(self, text: str, turns: Sequence[TurnRecord]) -> dict[str, float]:
        missing = [turn for turn in turns if turn.message_id not in self._vectors]
        if missing:
            rows = await self._embedder.embed([text for turn in missing for text in _said(turn)])
            self._vectors.update((turn.message_id, rows[2 * n : 2 * n + 2]) for n, turn in enumerate(missing))
        found = {turn.message_id: self._vectors[turn.message_id] for turn in turns}
        while len(self._vectors) > _KEPT:
            self._vectors.popitem(last=False)
        asked = (await self._embedder.embed([text[: 2 * _CHARS]], query=True))[0]
        if any(vectors.shape[1] != len(asked) for vectors in found.values()):
            _log.warning("vectors of two lengths came from %s; all are made anew", self._embedder.model)
            self._vectors.clear()
            raise EmbeddingsUnavailable("The vectors do not fit together.")
        return {name: float((vectors @ asked).max()) for name, vectors in found.items()}


def _said(turn: TurnRecord) -> tuple[str, str]:
    """The question alone, and with its answer: a long answer blurs what was asked, a short question says little."""
    return turn.user[:_CHARS], f"{turn.user[:_CHARS]}\n{turn.assistant[:_CHARS]}"
