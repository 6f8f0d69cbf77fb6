"""The interface of every embedder, the embedder that has no vectors, and how texts are prepared for a model. Cheap to
import: no numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from annabelle.core.errors import Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EmbeddingsUnavailable(Unavailable):
    """No vectors for now: none are wanted, the provider is down, or it answered something else. Words still work."""

    code = "embeddings_unavailable"


@dataclass(frozen=True, slots=True)
class ModelName:
    """Whose vectors these are; those of two models are never compared. Written `embedded/l2_supercat_256`."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


class Embedder(Protocol):
    """One model that makes vectors."""

    @property
    def model(self) -> ModelName:
        """The model in use. Read it after `embed`: a local server without a set model is asked for it there."""
        ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """One row of unit length per text, a row of zeros for a blank one; EmbeddingsUnavailable when it cannot.

        `query`: the texts are searched with, not searched for; some models want to be told.
        """
        ...

    async def close(self) -> None: ...


class UnavailableEmbedder:
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


_UNSENDABLE = {0: " "}


def clean_text(text: str, longest: int) -> str:
    """At most `longest` characters, without NUL and lone surrogates, which no tokenizer or JSON reader takes."""
    return text[:longest].translate(_UNSENDABLE).encode("utf-8", "replace").decode()


def is_blank(text: str) -> bool:
    """Whether there is nothing in it that could have a meaning."""
    return not text or text.isspace()


@dataclass(frozen=True, slots=True)
class ModelPrefixes:
    """The words before a query and before everything else."""

    query: str = ""
    document: str = ""


_SEARCHING = ModelPrefixes(query="Represent this sentence for searching relevant passages: ")
# By a part of the model's name, as its makers ask for it; without these the order of results suffers noticeably.
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
    """The prefixes of a model; none for one that is not known to want any."""
    name = model.name.lower().replace("_", "-")
    return next((prefixes for part, prefixes in _KNOWN.items() if part in name), ModelPrefixes())
