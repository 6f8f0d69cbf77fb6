"""What turns text into vectors, whoever does it."""

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
        """One row of unit length per text, a row of zeros for a blank one; EmbeddingsUnavailable when it can not.

        `query`: the texts are searched with, not searched for; some models want to be told.
        """
        ...

    async def close(self) -> None: ...
