"""Finds the earlier conversations that have to do with something: by meaning where there are vectors, else by words."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from annabelle.embeddings import Embedder, EmbeddingsUnavailable
from annabelle.thinker.session.records import Archive
from annabelle.thinker.session.words import share, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SECONDS: Final = 1.5
_KEPT_VECTORS: Final = 5_000
_QUERY_CHARS: Final = 1_000
_LEAST_MEANING: Final = 0.35
_LEAST_SHARE: Final = 0.34
_LEAST_WORDS: Final = 2


class Shelf:
    """One per thinker. Vectors of summaries are made once and held in memory."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    async def relevant(self, archives: Sequence[Archive], text: str, most: int) -> list[Archive]:
        """Those that have to do with a text, in the order they stand in, at most so many (SES-06)."""
        if not archives or most < 1:
            return []
        text = text[:_QUERY_CHARS]
        meant = await self.meanings(archives, text)
        if meant is not None:
            near = [(score, archive) for archive in archives if (score := meant[archive.id]) >= _LEAST_MEANING]
        else:
            near = _by_words(archives, text)
        best = {archive.id for _score, archive in sorted(near, key=lambda pair: -pair[0])[:most]}
        return [archive for archive in archives if archive.id in best]

    async def meanings(self, archives: Sequence[Archive], text: str) -> Mapping[str, float] | None:
        """How near each summary is to a text, by the archive's id; None when there are no vectors just now."""
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._nearness(archives, text[:_QUERY_CHARS])
        except (EmbeddingsUnavailable, TimeoutError):
            return None

    async def _nearness(self, archives: Sequence[Archive], text: str) -> dict[str, float]:
        fresh = [archive for archive in archives if _key(archive) not in self._vectors]
        if fresh:
            made = await self._embedder.embed([archive.summary for archive in fresh])
            self._vectors.update((_key(archive), row) for archive, row in zip(fresh, made, strict=True))
        # Taken out before anything is waited for: another turn may make room meanwhile.
        known = {archive.id: self._vectors[_key(archive)] for archive in archives}
        while len(self._vectors) > _KEPT_VECTORS:
            self._vectors.popitem(last=False)
        wanted = (await self._embedder.embed([text], query=True))[0]
        # A server that changed its model makes vectors of another length: they say nothing about these.
        return {name: float(one @ wanted) if one.shape == wanted.shape else 0.0 for name, one in known.items()}


def _key(archive: Archive) -> str:
    return f"{archive.id}:{hash(archive.summary)}"


def _by_words(archives: Sequence[Archive], text: str) -> list[tuple[float, Archive]]:
    asked = words(text)
    if len(asked) < _LEAST_WORDS:
        return []
    found = ((share(asked, archive.summary), archive) for archive in archives)
    return [(score, archive) for score, archive in found if score >= _LEAST_SHARE]
