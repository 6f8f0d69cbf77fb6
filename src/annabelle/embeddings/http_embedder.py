"""Vectors from a server: texts in batches, answers checked, a server that is down left alone for a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from annabelle.core.tools import JsonObject
from annabelle.embeddings.embedder import EmbeddingsUnavailable, ModelName
from annabelle.embeddings.http_service import HttpService, NoSuchModel, TooMuch
from annabelle.embeddings.model_choice import ModelChoice
from annabelle.embeddings.pause import Pause
from annabelle.embeddings.prefixes import prefixes_of
from annabelle.embeddings.texts import cleaned, is_blank

BATCH = 64
LONGEST = 8_000
"""Characters of a text that are sent; models read two to eight thousand tokens."""

_SHORTER = 1_000
_SHORTEST = 250


class Wire(Protocol):
    """How one kind of server is asked."""

    path: str

    def body(self, model: str, texts: list[str]) -> JsonObject: ...

    def rows(self, answer: object) -> list[object]:
        """The vectors in the order of the texts; ValueError when the answer has another shape."""
        ...


class HttpEmbedder:
    """One model on one server."""

    def __init__(self, service: HttpService, wire: Wire, choice: ModelChoice, pause: Pause | None = None) -> None:
        self._service, self._wire, self._choice = service, wire, choice
        self._pause = pause or Pause()
        self._dimension: int | None = None

    @property
    def model(self) -> ModelName:
        return self._choice.model

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        sendable = [cleaned(text, LONGEST) for text in texts]
        places = [place for place, text in enumerate(sendable) if not is_blank(text)]
        if texts and not places and self._dimension is None:
            await self._ask(["."])  # how long a row of zeros has to be
        if places:
            await self._choose()
        prefixes = prefixes_of(self.model)
        prefix = prefixes.query if query else prefixes.document
        parts: list[NDArray[np.float32]] = []
        for start in range(0, len(places), BATCH):
            parts.append(await self._ask([prefix + sendable[place] for place in places[start : start + BATCH]]))
        rows = np.zeros((len(texts), self._dimension or 0), np.float32)
        if parts:
            rows[places] = np.concatenate(parts)
        return rows

    async def close(self) -> None:
        await self._service.close()

    async def _choose(self) -> None:
        if not self._choice.made:
            with self._pause.attempt():
                await self._choice.make(self._service)

    async def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        await self._choose()
        with self._pause.attempt():
            rows = await self._rows_or_refusal(texts)
            if isinstance(rows, TooMuch) and max(map(len, texts)) > _SHORTER:
                rows = await self._rows_or_refusal([text[:_SHORTER] for text in texts])
            if isinstance(rows, TooMuch) and len(texts) > 1:
                rows = await self._one_by_one(texts, rows)
            if not isinstance(rows, TooMuch):
                self._check_dimension(rows.shape[1])
        if isinstance(rows, TooMuch):
            raise rows  # out here: a server that refuses one text still has an ear for the next
        return rows

    async def _one_by_one(self, texts: list[str], refusal: TooMuch) -> NDArray[np.float32] | TooMuch:
        """A text that is refused keeps no other from its vector; its own are zeros, which are near nothing."""
        answers: list[NDArray[np.float32] | None] = []
        for text in texts:
            rows = await self._rows_or_refusal([text[:_SHORTER]])
            if isinstance(rows, TooMuch) and len(text) > _SHORTEST:
                rows = await self._rows_or_refusal([text[:_SHORTEST]])
            if not isinstance(rows, TooMuch):
                self._check_dimension(rows.shape[1])
            answers.append(None if isinstance(rows, TooMuch) else rows)
        if all(rows is None for rows in answers):
            return refusal  # it is not the texts
        nothing = np.zeros((1, self._dimension or 0), np.float32)
        return np.concatenate([nothing if rows is None else rows for rows in answers])

    def _check_dimension(self, dimension: int) -> None:
        if self._dimension not in (None, dimension):
            raise EmbeddingsUnavailable(
                f"The model {self.model} now gives {dimension} numbers instead of {self._dimension}.",
                hint="Restart Annabelle; it then makes all vectors anew.",
            )
        self._dimension = dimension

    async def _rows_or_refusal(self, texts: list[str]) -> NDArray[np.float32] | TooMuch:
        try:
            return await self._rows(texts)
        except NoSuchModel:
            self._choice.reconsider()
            raise
        except TooMuch as refusal:
            return refusal

    async def _rows(self, texts: list[str]) -> NDArray[np.float32]:
        answer = await self._service.ask("POST", self._wire.path, self._wire.body(self.model.name, texts))
        try:
            return unit_rows(self._wire.rows(answer), len(texts))
        except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
            raise self._service.not_understood() from error


def unit_rows(rows: list[object], expected: int) -> NDArray[np.float32]:
    """Numbers as they came, as rows of unit length; ValueError for anything that is not one row for each text."""
    found = np.array(rows)
    if found.dtype.kind not in "fi" or found.ndim != 2 or found.shape[0] != expected or found.shape[1] < 1:
        raise ValueError("not one row of numbers for each text")
    numbers = found.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("not a number")
    largest = np.abs(numbers).max(axis=1, keepdims=True)
    numbers /= np.where(largest > 0, largest, 1)  # so that the squares of very large numbers stay finite
    length = np.linalg.norm(numbers, axis=1, keepdims=True)
    return (numbers / np.where(length > 0, length, 1)).astype(np.float32)
