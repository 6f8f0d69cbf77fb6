"""Vectors over OpenAI's protocol: OpenAI itself, LM Studio, and every server that speaks it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from annabelle.core.tools import JsonObject
from annabelle.embeddings.booked import BookedService
from annabelle.embeddings.books import Books, is_charged
from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.http_embedder import HttpEmbedder
from annabelle.embeddings.http_service import Hints, HttpService
from annabelle.embeddings.model_choice import ModelChoice

_LABELS = {"openai": "OpenAI", "lmstudio": "LM Studio"}


class OpenAiWire:
    """`/embeddings`: texts in, vectors out, each with the place of its text."""

    path = "/embeddings"

    def body(self, model: str, texts: list[str]) -> JsonObject:
        return {"model": model, "input": texts}

    def rows(self, answer: object) -> list[object]:
        entries = cast("JsonObject", answer).get("data") if isinstance(answer, dict) else None
        if not isinstance(entries, list):
            raise ValueError("no data")
        rows: dict[int, object] = {}
        for place, entry in enumerate(cast("list[object]", entries)):
            if not isinstance(entry, dict):
                raise ValueError("not an embedding")
            values = cast("JsonObject", entry)
            index = values.get("index", place)
            if not isinstance(index, int) or index in rows:
                raise ValueError("two vectors for one text")
            rows[index] = values.get("embedding")
        return [rows[place] for place in range(len(rows))]


def make(config: EmbeddingConfig, folder: Path | None, books: Books | None = None) -> HttpEmbedder:
    label = _LABELS.get(config.provider, "The server for embeddings")
    hints = Hints(
        label=label,
        start="Start it, or set EMBEDDING_PROVIDER=embedded to do without.",
        model="Load the model there, or name another in EMBEDDING_MODEL and restart Annabelle.",
    )
    charged = books if is_charged(config) else None
    service = HttpService(config, hints) if charged is None else BookedService(config, hints, charged)
    return HttpEmbedder(service, OpenAiWire(), ModelChoice(config.provider, config.model, folder))
