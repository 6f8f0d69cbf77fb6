"""Text embeddings: embedded and offline by default, other providers by setting, cached on disk.

Cheap to import: numpy, the vocabulary and the network client are loaded with the provider, by `make_embedder`.
"""

from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable, ModelName
from annabelle.embeddings.factory import make_embedder

__all__ = ["Embedder", "EmbeddingConfig", "EmbeddingsUnavailable", "ModelName", "make_embedder"]
