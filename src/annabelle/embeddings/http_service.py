"""Asks a server for vectors over HTTP, whatever its protocol."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

import httpx2 as httpx

from annabelle.core.tools import JsonObject
from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import EmbeddingsUnavailable

_CONNECT_SECONDS = 5.0
_LARGEST_ANSWER = 64 << 20
_KEY_REFUSED = (401, 403)
_TOO_MUCH = (400, 413, 422, 500)  # llama.cpp and what is built on it answers 500 to a text that is too long


class TooMuch(EmbeddingsUnavailable):
    """The server refused the request itself, as one whose texts are too long for its model."""


class NoSuchModel(EmbeddingsUnavailable):
    """The server does not have the model."""


@dataclass(frozen=True, slots=True)
class Hints:
    """What a person can do, in the words of this provider."""

    label: str
    start: str
    model: str


class HttpService:
    """One server. Its errors never quote an answer: that may hold the key, or the text someone wants forgotten."""

    def __init__(self, config: EmbeddingConfig, hints: Hints) -> None:
        self._base_url, self._timeout, self._hints = config.base_url, config.timeout, hints
        own = config.provider in ("openai", "compatible")
        self._key_names = f"EMBEDDING_API_KEY or {config.provider.upper()}_API_KEY" if own else "EMBEDDING_API_KEY"
        headers = {"content-type": "application/json"}
        if config.api_key is not None:
            headers["authorization"] = f"Bearer {config.api_key.get_secret_value()}"
        parts = urlsplit(config.base_url)
        self.place = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
        self._client = httpx.AsyncClient(
            # Without TLS the trust store, 30 ms to load, would never be used: an empty one trusts nobody.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if parts.scheme == "http" else True,
            trust_env=parts.hostname not in ("127.0.0.1", "localhost", "::1"),
            timeout=httpx.Timeout(config.timeout, connect=min(_CONNECT_SECONDS, config.timeout)),
            headers=headers,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, method: str, path: str, body: JsonObject | None = None) -> object:
        """The answer, read from JSON; EmbeddingsUnavailable for whatever else comes, or does not come."""
        content = None if body is None else json.dumps(body).encode()
        try:
            # The client's own timeout begins anew with each byte; this one is for the whole answer.
            async with asyncio.timeout(self._timeout):
                try:
                    answer = await self._exchange(method, path, content)
                except (httpx.NetworkError, httpx.RemoteProtocolError):
                    # A server may close a connection it kept open just when it is used again.
                    answer = await self._exchange(method, path, content)
                return json.loads(answer)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise EmbeddingsUnavailable(
                f"{self._hints.label} at {self.place} gave no vectors within {self._timeout:g} seconds.",
                hint="See whether it is busy, or raise EMBEDDING_TIMEOUT_SECONDS.",
            ) from error
        except httpx.ConnectError as error:
            raise EmbeddingsUnavailable(
                f"{self._hints.label} does not answer at {self.place}.", hint=self._hints.start
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EmbeddingsUnavailable(
                f"The connection to {self._hints.label} at {self.place} broke.", hint=self._hints.start
            ) from error
        except (ValueError, RecursionError) as error:
            raise self.not_understood() from error

    def not_understood(self) -> EmbeddingsUnavailable:
        return EmbeddingsUnavailable(
            f"{self._hints.label} at {self.place} answered something other than vectors.",
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
                    raise self.not_understood()
            return bytes(answer)

    def _refusal(self, status: int) -> EmbeddingsUnavailable:
        label = self._hints.label
        if status in _KEY_REFUSED:
            return EmbeddingsUnavailable(
                f"{label} at {self.place} refused the key for embeddings.", hint=f"Check {self._key_names}."
            )
        if status == HTTPStatus.NOT_FOUND:
            return NoSuchModel(
                f"{label} at {self.place} does not have the model for embeddings.", hint=self._hints.model
            )
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return EmbeddingsUnavailable(
                f"{label} at {self.place} takes no more requests for vectors for now.", hint="Wait a little."
            )
        kind = TooMuch if status in _TOO_MUCH else EmbeddingsUnavailable
        return kind(f"{label} at {self.place} refused to make vectors (status {status}).", hint=self._hints.model)
