"""No vectors, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from annabelle.embeddings.embedder import EmbeddingsUnavailable, ModelName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class NoEmbedder:
    """Answers every request with the same sentence; everything that does not need vectors goes on."""

    def __init__(self, model: ModelName, reason: str, hint: str) -> None:
        self._model, self._reason, self._hint = model, reason, hint

    @property
    def model(self) -> ModelName:
        return self._model

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        raise EmbeddingsUnavailable(self._reason, hint=self._hint)

    async def close(self) -> None:
        """It holds nothing open."""
