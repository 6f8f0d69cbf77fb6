"""Which model a server is asked for, when the settings leave it to the server."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import cast

from annabelle.core.home import write_atomically
from annabelle.core.tools import JsonObject
from annabelle.embeddings.embedder import EmbeddingsUnavailable, ModelName
from annabelle.embeddings.http_service import HttpService

_log = logging.getLogger(__name__)

_SIGNS = ("embed", "bge-", "e5-", "gte-", "minilm")


class ModelChoice:
    """The set model, else the first one for vectors that the server lists.

    What was found is written down and kept until the server no longer has it: the vectors of two models can not be
    compared, so a server that lists its models in another order must not change the model.
    """

    def __init__(self, provider: str, model: str, folder: Path | None) -> None:
        self.model = ModelName(provider, model)
        self._file = None if model or folder is None else folder / f"{provider}-model.json"
        if self._file is not None:
            self.model = ModelName(provider, _remembered(self._file))

    @property
    def made(self) -> bool:
        return self.model.name != ""

    async def make(self, service: HttpService) -> None:
        """Ask the server what it has; EmbeddingsUnavailable when there is nothing for vectors."""
        answer = await service.ask("GET", "/models")
        names = _listed(answer)
        if names is None:
            raise service.not_understood()
        fitting = [name for name in names if any(sign in name.lower() for sign in _SIGNS)]
        if not fitting:
            raise EmbeddingsUnavailable(
                f"The server at {service.place} lists no model for embeddings.",
                hint="Load one there, as nomic-embed-text, or name it in EMBEDDING_MODEL.",
            )
        self.model = ModelName(self.model.provider, fitting[0])
        if self._file is not None:
            try:
                write_atomically(self._file, json.dumps({"model": fitting[0]}))
            except OSError as error:
                _log.warning("%s can not be written: %s.", self._file, error.strerror)

    def reconsider(self) -> None:
        """The server does not have it any more: the next start may choose another."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def _remembered(file: Path) -> str:
    try:
        note = cast("object", json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return ""
    name = cast("JsonObject", note).get("model") if isinstance(note, dict) else None
    return name if isinstance(name, str) else ""


def _listed(answer: object) -> list[str] | None:
    entries = cast("JsonObject", answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        return None
    names = [cast("JsonObject", entry).get("id") for entry in cast("list[object]", entries) if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str) and name]
