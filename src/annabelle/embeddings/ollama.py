"""Embeddings from Ollama's own API."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from annabelle.core.tools import JsonObject
from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.http_embedder import EmbeddingHttpClient, EmbeddingModelChoice, HttpEmbedder, ProviderHints


class OllamaEmbeddingProtocol:
    """`/api/embed`, which truncates long texts itself."""

    path = "/api/embed"

    def body(self, model: str, texts: list[str]) -> JsonObject:
        return {"model": model, "input": texts, "truncate": True}

    def rows(self, answer: object) -> list[object]:
        rows = cast("JsonObject", answer).get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise ValueError("no embeddings")
        return cast("list[object]", rows)


def make(config: EmbeddingConfig, folder: Path | None) -> HttpEmbedder:
    hints = ProviderHints(
        label="Ollama",
        start="Start it with: ollama serve (or set EMBEDDING_PROVIDER=embedded to do without).",
        model=f"Get it with: ollama pull {config.model}",
    )
    return HttpEmbedder(
        EmbeddingHttpClient(config, hints),
        OllamaEmbeddingProtocol(),
        EmbeddingModelChoice("ollama", config.model, folder),
    )
