"""Keeps the vectors of a provider on disk, so that no text is paid or waited for twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings.cache_file import CacheFile, Vectors
from annabelle.embeddings.cache_folder import path_for
from annabelle.embeddings.cache_format import key_of
from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable, ModelName
from annabelle.embeddings.texts import is_blank

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_KEPT_AFTER = 256
"""Texts after which what came is written down: a provider that goes away in the middle has not worked in vain."""


class CachedEmbedder:
    """Asks the provider only for what is not on disk. Trouble with the disk costs time, never an answer."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self._inner, self._folder = inner, folder
        self._file: CacheFile | None = None
        self._dimension: int | None = None
        self._complained = False

    @property
    def model(self) -> ModelName:
        return self._inner.model

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self._dimension or 0), np.float32)
        if query:
            return await self._asked(texts)
        wanted = list(dict.fromkeys(text for text in texts if not is_blank(text)))
        vectors = await self._known(wanted)
        missing = [text for text in wanted if text not in vectors]
        for start in range(0, len(missing), _KEPT_AFTER):
            part = missing[start : start + _KEPT_AFTER]
            fresh = await self._inner.embed(part)
            if vectors and fresh.shape[1] != len(next(iter(vectors.values()))):
                return await self._anew(texts)
            vectors.update(zip(part, fresh, strict=True))
            await self._keep(part, fresh)
        rows = np.zeros((len(texts), await self._dimension_of(vectors)), np.float32)
        for place, text in enumerate(texts):
            if text in vectors:
                rows[place] = vectors[text]
        return rows

    async def close(self) -> None:
        await self._inner.close()

    async def _known(self, texts: list[str]) -> dict[str, NDArray[np.float32]]:
        keys = {text: key_of(self.model, text) for text in texts}
        found: Vectors = await self._on_disk(lambda file: file.read(list(keys.values()))) or {}
        return {text: found[key] for text, key in keys.items() if key in found}

    async def _keep(self, texts: list[str], rows: NDArray[np.float32]) -> None:
        # Keys are made here once more: the model may have been chosen just now, and it is a part of them.
        new = {key_of(self.model, text): row for text, row in zip(texts, rows, strict=True)}
        await self._on_disk(lambda file: file.add(new))

    async def _dimension_of(self, vectors: Mapping[str, NDArray[np.float32]]) -> int:
        for vector in vectors.values():
            await self._check(len(vector))
            return len(vector)
        return self._dimension or (await self._inner.embed([""])).shape[1]

    async def _check(self, dimension: int) -> None:
        """Once given out, a dimension never changes while this process lives."""
        if self._dimension not in (None, dimension):
            await self._on_disk(CacheFile.clear)
            raise EmbeddingsUnavailable(
                f"The model {self.model} now gives {dimension} numbers instead of {self._dimension}.",
                hint="Restart Annabelle; it then makes all vectors anew.",
            )
        self._dimension = dimension

    async def _anew(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The model of this name is another one since the file was written: nothing in it is worth keeping."""
        await self._on_disk(CacheFile.clear)
        rows = await self._inner.embed(texts)
        await self._check(rows.shape[1])
        return rows

    async def _asked(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Queries are not written down: no one keeps their words, so no one could name them to be forgotten."""
        rows = await self._inner.embed(texts, query=True)
        await self._check(rows.shape[1])
        return rows

    async def _on_disk(self, act: Callable[[CacheFile], _Result]) -> _Result | None:
        """What the file gives; None, and one complaint in the log, when the disk does not."""
        if not self.model.name:
            return None  # not yet known whose vectors these will be
        if self._file is None:
            self._file = CacheFile(path_for(self._folder, self.model), self.model)
        try:
            result = await asyncio.to_thread(act, self._file)
        except OSError as error:
            if not self._complained:
                _log.warning("Vectors are not cached: %s can not be used (%s).", self._folder, error.strerror)
            self._complained = True
            return None
        return result
