"""An embedder that needs no cache, but clears what earlier ones left there."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from annabelle.embeddings.embedder import Embedder, ModelName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class UncachedEmbedder:
    """Passes everything on. What was cached while another provider was in use is still forgotten on demand."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self._inner, self._folder = inner, folder

    @property
    def model(self) -> ModelName:
        return self._inner.model

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        return await self._inner.embed(texts, query=query)

    async def forget(self, texts: Sequence[str]) -> None:
        # Loaded when it is needed: with no vectors wanted, numpy never comes into the process.
        forgetting = await asyncio.to_thread(importlib.import_module, "annabelle.embeddings.cache_folder")
        await asyncio.to_thread(forgetting.forget, self._folder, list(texts))

    async def close(self) -> None:
        await self._inner.close()
