"""Embeddings from the packaged model. Reads `wordllama`'s files without importing it, which takes 60 MB more."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import EmbeddingsUnavailable, ModelName, clean_text, is_blank
from annabelle.embeddings.metering import EmbeddingMeter

_LONGEST_HEADER = 1 << 20
_MOST_TOKENS = 16_384  # emoji take several tokens each; a page of them would need 40 MB
_HINT = "Install Annabelle again and restart it; until then search goes by words alone."


@dataclass(frozen=True, slots=True)
class PackagedWeights:
    """One vector per token, memory-mapped, so that processes share the pages in use."""

    tokens: NDArray[np.float16]
    tokenizer: Tokenizer

    @property
    def dimension(self) -> int:
        return self.tokens.shape[1]

    def vector(self, text: str) -> NDArray[np.float32]:
        """Mean of the token vectors at unit length; zeros if there is no token."""
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids[:_MOST_TOKENS]
        if not ids:
            return np.zeros(self.dimension, np.float32)
        places = np.minimum(np.asarray(ids, np.int64), len(self.tokens) - 1)  # as the package does
        mean = self.tokens[places].mean(axis=0, dtype=np.float32)
        length = float(np.linalg.norm(mean))
        return mean / np.float32(length) if length > 0 else mean


def load_weights(model: str, folder: Path | None = None) -> PackagedWeights:
    """Loads a packaged model; EmbeddingsUnavailable if it is missing or damaged."""
    folder = folder or _find_package()
    try:
        tokenizer = _load_vocabulary(folder / "tokenizers" / f"{model.rpartition('_')[0]}_tokenizer_config.json")
        return PackagedWeights(_map_token_vectors(folder / "weights" / f"{model}.safetensors"), tokenizer)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbeddingsUnavailable(
            f"The embedded model for vectors is damaged: {type(error).__name__} in {folder.name}.", hint=_HINT
        ) from error


def _find_package() -> Path:
    try:
        spec = find_spec("wordllama")
    except (ImportError, ValueError) as error:
        raise EmbeddingsUnavailable("The embedded model for vectors can not be found.", hint=_HINT) from error
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingsUnavailable("The embedded model for vectors is not installed.", hint=_HINT)
    return Path(spec.submodule_search_locations[0])


def _load_vocabulary(file: Path) -> Tokenizer:
    text = file.read_text(encoding="utf-8")
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing more specific for a damaged vocabulary
        raise ValueError("the vocabulary can not be read") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _map_token_vectors(file: Path) -> NDArray[np.float16]:
    """Maps the only tensor of a safetensors file: eight bytes of length, a JSON header, the numbers."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if not 0 < length < _LONGEST_HEADER:
            raise ValueError("the header of the weights is damaged")
        header = cast("dict[str, dict[str, object]]", json.loads(opened.read(length)))
    tensor = header["embedding.weight"]
    rows, columns = cast("Sequence[int]", tensor["shape"])
    start, end = cast("Sequence[int]", tensor["data_offsets"])
    if tensor["dtype"] != "F16" or end - start != 2 * math.prod((rows, columns)) or rows < 1 or columns < 1:
        raise ValueError("the weights are not of the expected kind")
    return np.memmap(file, dtype=np.float16, mode="r", offset=8 + length + start, shape=(rows, columns))


LONGEST_TEXT = 20_000
"""Characters of a text that are used; more would hardly change the mean."""

_AT_ONCE = 4_000


def make(config: EmbeddingConfig, folder: Path | None, books: EmbeddingMeter | None = None) -> EmbeddedModel:
    return EmbeddedModel(ModelName("embedded", config.model))


class EmbeddedModel:
    """The packaged model, loaded at the first text, off the event loop."""

    def __init__(self, model: ModelName, package: Path | None = None) -> None:
        self._model, self._package = model, package
        self._weights: PackagedWeights | None = None
        self._trouble: EmbeddingsUnavailable | None = None
        self._opening = asyncio.Lock()

    @property
    def model(self) -> ModelName:
        return self._model

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        weights = self._weights or await self._open()
        if sum(min(len(text), LONGEST_TEXT) for text in texts) <= _AT_ONCE:
            return _embed_texts(weights, texts)
        return await asyncio.to_thread(_embed_texts, weights, texts)

    async def close(self) -> None:
        self._weights = None

    async def _open(self) -> PackagedWeights:
        async with self._opening:
            if self._trouble is not None:
                raise EmbeddingsUnavailable(self._trouble.message, hint=self._trouble.hint)
            if self._weights is None:
                try:
                    self._weights = await asyncio.to_thread(load_weights, self._model.name, self._package)
                except EmbeddingsUnavailable as trouble:
                    self._trouble = trouble  # permanent until the install is repaired
                    raise
            return self._weights


def _embed_texts(weights: PackagedWeights, texts: Sequence[str]) -> NDArray[np.float32]:
    rows = np.zeros((len(texts), weights.dimension), np.float32)
    for row, text in enumerate(texts):
        text = clean_text(text, LONGEST_TEXT)
        if not is_blank(text):
            rows[row] = weights.vector(text)
    return rows
