"""Vectors from the packaged model: offline, without a key, a few hundredths of a millisecond each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import EmbeddingsUnavailable, ModelName
from annabelle.embeddings.texts import cleaned, is_blank
from annabelle.embeddings.weights import Weights, load

LONGEST = 20_000
"""Characters of a text that count; more would not change its mean by much."""

_AT_ONCE = 4_000


def make(config: EmbeddingConfig, folder: Path | None) -> EmbeddedModel:
    return EmbeddedModel(ModelName("embedded", config.model))


class EmbeddedModel:
    """The packaged model. It is opened at the first text, off the event loop."""

    def __init__(self, model: ModelName, package: Path | None = None) -> None:
        self._model, self._package = model, package
        self._weights: Weights | None = None
        self._trouble: EmbeddingsUnavailable | None = None
        self._opening = asyncio.Lock()

    @property
    def model(self) -> ModelName:
        return self._model

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        weights = self._weights or await self._open()
        if sum(min(len(text), LONGEST) for text in texts) <= _AT_ONCE:
            return _vectors(weights, texts)
        return await asyncio.to_thread(_vectors, weights, texts)

    async def close(self) -> None:
        self._weights = None

    async def _open(self) -> Weights:
        async with self._opening:
            if self._trouble is not None:
                raise EmbeddingsUnavailable(self._trouble.message, hint=self._trouble.hint)
            if self._weights is None:
                try:
                    self._weights = await asyncio.to_thread(load, self._model.name, self._package)
                except EmbeddingsUnavailable as trouble:
                    self._trouble = trouble  # a damaged install does not heal while it runs
                    raise
            return self._weights


def _vectors(weights: Weights, texts: Sequence[str]) -> NDArray[np.float32]:
    rows = np.zeros((len(texts), weights.dimension), np.float32)
    for row, text in enumerate(texts):
        text = cleaned(text, LONGEST)
        if not is_blank(text):
            rows[row] = weights.vector(text)
    return rows
