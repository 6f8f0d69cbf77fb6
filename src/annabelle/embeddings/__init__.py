"""Text embeddings, embedded and offline by default. Cheap to import: `make_embedder` loads the provider."""

from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import Embedder, EmbeddingsUnavailable, ModelName
from annabelle.embeddings.factory import make_embedder

__all__ = ["Embedder", "EmbeddingConfig", "EmbeddingsUnavailable", "ModelName", "make_embedder"]
