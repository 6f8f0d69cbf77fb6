"""Text to vectors: embedded and offline by default, other providers by setting, cached on disk.

What stands here is cheap to import: numpy, the vocabulary and the network client come in with the provider that
needs them, when `make_embedder` makes it. `Matrix`, for searching vectors in memory, is in `embeddings.matrix`.
"""

from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable, ModelName
from annabelle.embeddings.factory import make_embedder

__all__ = ["Embedder", "EmbeddingConfig", "EmbeddingsUnavailable", "ModelName", "make_embedder"]
