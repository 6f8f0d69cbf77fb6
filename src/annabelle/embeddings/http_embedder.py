"""Embeddings over HTTP: batches of texts, validated answers, and a pause after a failure."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import urlsplit

import httpx2 as httpx
import numpy as np
from numpy.typing import NDArray

from annabelle.core.home import write_atomically
from annabelle.core.network_access import trust_store
from annabelle.core.tools import JsonObject
from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import EmbeddingsUnavailable, ModelName, clean_text, find_prefixes, is_blank

_CONNECT_SECONDS = 5.0
_LARGEST_ANSWER = 64 << 20
_KEY_REFUSED = (401, 403)
_TOO_LARGE_STATUSES = (400, 413, 422, 500)  # llama.cpp answers 500 to a text that is too long


class RequestTooLarge(EmbeddingsUnavailable):
    """The server refused the request itself, for example because its texts are too long."""


class EmbeddingModelMissing(EmbeddingsUnavailable):
    """The server does not have the model."""


@dataclass(frozen=True, slots=True)
class ProviderHints:
    """Hints for people, specific to this provider."""

    label: str
    start: str
    model: str


class EmbeddingHttpClient:
    """Client for one server. Errors never quote an answer, which may contain the key or a text to be forgotten."""

    def __init__(self, config: EmbeddingConfig, hints: ProviderHints) -> None:
        self._base_url, self._timeout, self._hints = config.base_url, config.timeout, hints
        own = config.provider in ("openai", "compatible")
        self._key_names = f"EMBEDDING_API_KEY or {config.provider.upper()}_API_KEY" if own else "EMBEDDING_API_KEY"
        headers = {"content-type": "application/json"}
        if config.api_key is not None:
            headers["authorization"] = f"Bearer {config.api_key.get_secret_value()}"
        parts = urlsplit(config.base_url)
        self.address = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
        self._client = httpx.AsyncClient(
            verify=trust_store(config.base_url),
            trust_env=parts.hostname not in ("127.0.0.1", "localhost", "::1"),
            timeout=httpx.Timeout(config.timeout, connect=min(_CONNECT_SECONDS, config.timeout)),
            headers=headers,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def request(self, method: str, path: str, body: JsonObject | None = None) -> object:
        """Returns the parsed JSON answer; EmbeddingsUnavailable for any failure."""
        content = None if body is None else json.dumps(body).encode()
        try:
            # The client's own timeout restarts with each byte; this one covers the whole answer.
            async with asyncio.timeout(self._timeout):
                try:
                    answer = await self._exchange(method, path, content)
                except (httpx.NetworkError, httpx.RemoteProtocolError):
                    # A server may close a kept connection just when it is used again.
                    answer = await self._exchange(method, path, content)
                return json.loads(answer)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise EmbeddingsUnavailable(
                f"{self._hints.label} at {self.address} gave no vectors within {self._timeout:g} seconds.",
                hint="See whether it is busy, or raise EMBEDDING_TIMEOUT_SECONDS.",
            ) from error
        except httpx.ConnectError as error:
            raise EmbeddingsUnavailable(
                f"{self._hints.label} does not answer at {self.address}.", hint=self._hints.start
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EmbeddingsUnavailable(
                f"The connection to {self._hints.label} at {self.address} broke.", hint=self._hints.start
            ) from error
        except (ValueError, RecursionError) as error:
            raise self.unexpected_answer() from error

    def unexpected_answer(self) -> EmbeddingsUnavailable:
        return EmbeddingsUnavailable(
            f"{self._hints.label} at {self.address} answered something other than vectors.",
            hint="See whether EMBEDDING_BASE_URL and EMBEDDING_MODEL fit EMBEDDING_PROVIDER.",
        )

    async def _exchange(self, method: str, path: str, content: bytes | None) -> bytes:
        async with self._client.stream(method, self._base_url + path, content=content) as response:
            if response.status_code != HTTPStatus.OK:
                raise self._refusal(response.status_code)
            answer = bytearray()
            async for piece in response.aiter_bytes():
                answer += piece
                if len(answer) > _LARGEST_ANSWER:
                    raise self.unexpected_answer()
            return bytes(answer)

    def _refusal(self, status: int) -> EmbeddingsUnavailable:
        label = self._hints.label
        if status in _KEY_REFUSED:
            return EmbeddingsUnavailable(
                f"{label} at {self.address} refused the key for embeddings.", hint=f"Check {self._key_names}."
            )
        if status == HTTPStatus.NOT_FOUND:
            return EmbeddingModelMissing(
                f"{label} at {self.address} does not have the model for embeddings.", hint=self._hints.model
            )
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return EmbeddingsUnavailable(
                f"{label} at {self.address} takes no more requests for vectors for now.", hint="Wait a little."
            )
        kind = RequestTooLarge if status in _TOO_LARGE_STATUSES else EmbeddingsUnavailable
        return kind(f"{label} at {self.address} refused to make vectors (status {status}).", hint=self._hints.model)


_log = logging.getLogger(__name__)

_EMBEDDING_MODEL_MARKERS = ("embed", "bge-", "e5-", "gte-", "minilm")


class EmbeddingModelChoice:
    """The configured model, else the first embedding model that the server lists.

    The found one is stored and kept until the server no longer has it: vectors of different models cannot be compared,
    so a change in the server's order must not change the model.
    """

    def __init__(self, provider: str, model: str, folder: Path | None) -> None:
        self.model = ModelName(provider, model)
        self._file = None if model or folder is None else folder / f"{provider}-model.json"
        if self._file is not None:
            self.model = ModelName(provider, _read_choice(self._file))

    @property
    def is_chosen(self) -> bool:
        return self.model.name != ""

    async def choose(self, service: EmbeddingHttpClient) -> None:
        """Asks the server for its models; EmbeddingsUnavailable if none makes vectors."""
        answer = await service.request("GET", "/models")
        names = _parse_model_list(answer)
        if names is None:
            raise service.unexpected_answer()
        fitting = [name for name in names if any(sign in name.lower() for sign in _EMBEDDING_MODEL_MARKERS)]
        if not fitting:
            raise EmbeddingsUnavailable(
                f"The server at {service.address} lists no model for embeddings.",
                hint="Load one there, as nomic-embed-text, or name it in EMBEDDING_MODEL.",
            )
        self.model = ModelName(self.model.provider, fitting[0])
        if self._file is not None:
            try:
                write_atomically(self._file, json.dumps({"model": fitting[0]}))
            except OSError as error:
                _log.warning("%s can not be written: %s.", self._file, error.strerror)

    def discard(self) -> None:
        """Forgets a model that the server no longer has, so that the next start chooses another."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def _read_choice(file: Path) -> str:
    try:
        note = cast("object", json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return ""
    name = cast("JsonObject", note).get("model") if isinstance(note, dict) else None
    return name if isinstance(name, str) else ""


def _parse_model_list(answer: object) -> list[str] | None:
    entries = cast("JsonObject", answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        return None
    names = [cast("JsonObject", entry).get("id") for entry in cast("list[object]", entries) if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str) and name]


PAUSE_SECONDS = 15.0


class ProviderPause:
    """After a failure, repeats its error until the pause is over; then one caller tries again."""

    def __init__(self, seconds: float = PAUSE_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._trouble: EmbeddingsUnavailable | None = None
        self._until = 0.0
        self._trying = False

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Wraps a request: raises at once during the pause, and records how the request ends."""
        if self._trouble is not None and (self._trying or self._clock() < self._until):
            raise EmbeddingsUnavailable(self._trouble.message, hint=self._trouble.hint)
        self._trying = True
        try:
            yield
        except EmbeddingsUnavailable as trouble:
            self._trouble, self._until = trouble, self._clock() + self._seconds
            raise
        else:
            self._trouble = None
        finally:
            self._trying = False


BATCH = 64
LONGEST_TEXT = 8_000
"""Characters of a text that are sent; models read two to eight thousand tokens."""

_SHORTER = 1_000
_SHORTEST = 250


class EmbeddingProtocol(Protocol):
    """Request format of one kind of server."""

    path: str

    def body(self, model: str, texts: list[str]) -> JsonObject: ...

    def rows(self, answer: object) -> list[object]:
        """Returns the vectors in the order of the texts; ValueError if the answer is malformed."""
        ...


class HttpEmbedder:
    def __init__(
        self,
        service: EmbeddingHttpClient,
        wire: EmbeddingProtocol,
        choice: EmbeddingModelChoice,
        pause: ProviderPause | None = None,
    ) -> None:
        self._service, self._protocol, self._choice = service, wire, choice
        self._pause = pause or ProviderPause()
        self._dimension: int | None = None

    @property
    def model(self) -> ModelName:
        return self._choice.model

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        sendable = [clean_text(text, LONGEST_TEXT) for text in texts]
        places = [place for place, text in enumerate(sendable) if not is_blank(text)]
        if texts and not places and self._dimension is None:
            await self._embed_batch(["."])  # finds the length of a row of zeros
        if places:
            await self._choose()
        prefixes = find_prefixes(self.model)
        prefix = prefixes.query if query else prefixes.document
        parts: list[NDArray[np.float32]] = []
        for start in range(0, len(places), BATCH):
            parts.append(await self._embed_batch([prefix + sendable[place] for place in places[start : start + BATCH]]))
        rows = np.zeros((len(texts), self._dimension or 0), np.float32)
        if parts:
            rows[places] = np.concatenate(parts)
        return rows

    async def close(self) -> None:
        await self._service.close()

    async def _choose(self) -> None:
        if not self._choice.is_chosen:
            with self._pause.attempt():
                await self._choice.choose(self._service)

    async def _embed_batch(self, texts: list[str]) -> NDArray[np.float32]:
        await self._choose()
        with self._pause.attempt():
            rows = await self._rows_or_refusal(texts)
            if isinstance(rows, RequestTooLarge) and max(map(len, texts)) > _SHORTER:
                rows = await self._rows_or_refusal([text[:_SHORTER] for text in texts])
            if isinstance(rows, RequestTooLarge) and len(texts) > 1:
                rows = await self._embed_one_by_one(texts, rows)
            if not isinstance(rows, RequestTooLarge):
                self._check_dimension(rows.shape[1])
        if isinstance(rows, RequestTooLarge):
            raise rows  # outside the pause: a server that refuses one text may accept the next
        return rows

    async def _embed_one_by_one(
        self, texts: list[str], refusal: RequestTooLarge
    ) -> NDArray[np.float32] | RequestTooLarge:
        """Embeds texts one by one; a refused text gets zeros, which are near nothing."""
        answers: list[NDArray[np.float32] | None] = []
        for text in texts:
            rows = await self._rows_or_refusal([text[:_SHORTER]])
            if isinstance(rows, RequestTooLarge) and len(text) > _SHORTEST:
                rows = await self._rows_or_refusal([text[:_SHORTEST]])
            if not isinstance(rows, RequestTooLarge):
                self._check_dimension(rows.shape[1])
            answers.append(None if isinstance(rows, RequestTooLarge) else rows)
        if all(rows is None for rows in answers):
            return refusal  # the texts are not the reason
        nothing = np.zeros((1, self._dimension or 0), np.float32)
        return np.concatenate([nothing if rows is None else rows for rows in answers])

    def _check_dimension(self, dimension: int) -> None:
        if self._dimension not in (None, dimension):
            raise EmbeddingsUnavailable(
                f"The model {self.model} now gives {dimension} numbers instead of {self._dimension}.",
                hint="Restart Annabelle; it then makes all vectors anew.",
            )
        self._dimension = dimension

    async def _rows_or_refusal(self, texts: list[str]) -> NDArray[np.float32] | RequestTooLarge:
        try:
            return await self._request_rows(texts)
        except EmbeddingModelMissing:
            self._choice.discard()
            raise
        except RequestTooLarge as refusal:
            return refusal

    async def _request_rows(self, texts: list[str]) -> NDArray[np.float32]:
        answer = await self._service.request("POST", self._protocol.path, self._protocol.body(self.model.name, texts))
        try:
            return to_unit_rows(self._protocol.rows(answer), len(texts))
        except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
            raise self._service.unexpected_answer() from error


def to_unit_rows(rows: list[object], expected: int) -> NDArray[np.float32]:
    """Scales rows to unit length; ValueError unless there is one numeric row per text."""
    found = np.array(rows)
    if found.dtype.kind not in "fi" or found.ndim != 2 or found.shape[0] != expected or found.shape[1] < 1:
        raise ValueError("not one row of numbers for each text")
    numbers = found.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("not a number")
    largest = np.abs(numbers).max(axis=1, keepdims=True)
    numbers /= np.where(largest > 0, largest, 1)  # keeps squares of very large numbers finite
    length = np.linalg.norm(numbers, axis=1, keepdims=True)
    return (numbers / np.where(length > 0, length, 1)).astype(np.float32)
