"""Reads the weights and the vocabulary that come with the installed `wordllama` package, without running it.

Importing the package itself costs 60 MB more and sets up logging for the whole process; its vectors are the mean of
its token vectors, which two files and a few lines give as well.
"""

from __future__ import annotations

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

from annabelle.embeddings.embedder import EmbeddingsUnavailable

_LONGEST_HEADER = 1 << 20
_MOST_TOKENS = 16_384  # a page of emoji is several tokens a sign; all their vectors together would be 40 MB
_HINT = "Install Annabelle again and restart it; until then search goes by words alone."


@dataclass(frozen=True, slots=True)
class Weights:
    """One vector per token, mapped from the file: the pages in use are shared by all processes."""

    tokens: NDArray[np.float16]
    tokenizer: Tokenizer

    @property
    def dimension(self) -> int:
        return self.tokens.shape[1]

    def vector(self, text: str) -> NDArray[np.float32]:
        """The mean of the token vectors, at unit length; zeros when there is no token."""
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids[:_MOST_TOKENS]
        if not ids:
            return np.zeros(self.dimension, np.float32)
        places = np.minimum(np.asarray(ids, np.int64), len(self.tokens) - 1)  # as the package does
        mean = self.tokens[places].mean(axis=0, dtype=np.float32)
        length = float(np.linalg.norm(mean))
        return mean / np.float32(length) if length > 0 else mean


def load(model: str, folder: Path | None = None) -> Weights:
    """The packaged model of this name; EmbeddingsUnavailable when the package is missing or damaged."""
    folder = folder or _package()
    try:
        tokenizer = _vocabulary(folder / "tokenizers" / f"{model.rpartition('_')[0]}_tokenizer_config.json")
        return Weights(_tokens(folder / "weights" / f"{model}.safetensors"), tokenizer)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EmbeddingsUnavailable(
            f"The embedded model for vectors is damaged: {type(error).__name__} in {folder.name}.", hint=_HINT
        ) from error


def _package() -> Path:
    try:
        spec = find_spec("wordllama")
    except (ImportError, ValueError) as error:
        raise EmbeddingsUnavailable("The embedded model for vectors can not be found.", hint=_HINT) from error
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingsUnavailable("The embedded model for vectors is not installed.", hint=_HINT)
    return Path(spec.submodule_search_locations[0])


def _vocabulary(file: Path) -> Tokenizer:
    text = file.read_text(encoding="utf-8")
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing more exact for a damaged vocabulary
        raise ValueError("the vocabulary can not be read") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _tokens(file: Path) -> NDArray[np.float16]:
    """The one tensor of a safetensors file: eight bytes of length, a header in JSON, the numbers."""
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
