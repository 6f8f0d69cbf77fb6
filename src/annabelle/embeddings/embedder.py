"""The embedder interface, an embedder without vectors, and preparation of texts. Cheap to import: no numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from annabelle.core.errors import Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EmbeddingsUnavailable(Unavailable):
    """No vectors now: switched off, the provider is down, or its answer is invalid. Search by words still works."""

    code = "embeddings_unavailable"


@dataclass(frozen=True, slots=True)
class ModelName:
    """Provider and model of vectors, as `embedded/l2_supercat_256`. Vectors of different models are never compared."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


class Embedder(Protocol):
    @property
    def model(self) -> ModelName:
        """The model in use. Read it after `embed`, which looks up the model of a local server if none is set."""
        ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Returns one unit-length row per text, zeros for a blank one; EmbeddingsUnavailable on failure.

        `query`: the texts are search queries, which some models treat differently.
        """
        ...

    async def close(self) -> None: ...


class UnavailableEmbedder:
    """Raises the same error for every request."""

    def __init__(self, model: ModelName, reason: str, hint: str) -> None:
        self._model, self._reason, self._hint = model, reason, hint

    @property
    def model(self) -> ModelName:
        return self._model

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        raise EmbeddingsUnavailable(self._reason, hint=self._hint)

    async def close(self) -> None:
        """Does nothing."""


_UNSENDABLE = {0: " "}


def clean_text(text: str, longest: int) -> str:
    """Cuts a text to `longest` characters, without NUL and lone surrogates, which tokenizers and JSON reject."""
    return text[:longest].translate(_UNSENDABLE).encode("utf-8", "replace").decode()


def is_blank(text: str) -> bool:
    return not text or text.isspace()


@dataclass(frozen=True, slots=True)
class ModelPrefixes:
    query: str = ""
    document: str = ""


_SEARCHING = ModelPrefixes(query="Represent this sentence for searching relevant passages: ")
# By part of the model's name, as documented by its makers; without them results rank noticeably worse.
_KNOWN = {
    "nomic-embed": ModelPrefixes("search_query: ", "search_document: "),
    "multilingual-e5": ModelPrefixes("query: ", "passage: "),
    "e5-small": ModelPrefixes("query: ", "passage: "),
    "e5-base": ModelPrefixes("query: ", "passage: "),
    "e5-large": ModelPrefixes("query: ", "passage: "),
    "embeddinggemma": ModelPrefixes("task: search result | query: ", "title: none | text: "),
    "embedding-gemma": ModelPrefixes("task: search result | query: ", "title: none | text: "),
    "qwen3-embedding": ModelPrefixes(query="Instruct: Given a question, find the passages that answer it\nQuery: "),
    "mxbai-embed-large": _SEARCHING,
    "bge-small-en": _SEARCHING,
    "bge-base-en": _SEARCHING,
    "bge-large-en": _SEARCHING,
    "snowflake-arctic-embed2": ModelPrefixes(query="query: "),
    "snowflake-arctic-embed": _SEARCHING,
}


def find_prefixes(model: ModelName) -> ModelPrefixes:
    name = model.name.lower().replace("_", "-")
    return next((prefixes for part, prefixes in _KNOWN.items() if part in name), ModelPrefixes())
