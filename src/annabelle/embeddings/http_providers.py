"""Embeddings over Ollama's and OpenAI's protocols, metered in the ledger if they cost money (CST-09, TRU-01)."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Final, Literal, cast

from annabelle.core.contract import ModelCall, Reserve, TokenUsage
from annabelle.core.errors import AnnabelleError
from annabelle.core.ids import new_id
from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import EmbeddingsUnavailable
from annabelle.embeddings.http_embedder import EmbeddingHttpClient, EmbeddingModelChoice, HttpEmbedder, ProviderHints
from annabelle.embeddings.metering import PURPOSE, EmbeddingMeter, is_charged

_LEDGER_SECONDS: Final = 30.0
_log = logging.getLogger(__name__)


class MeteredHttpService(EmbeddingHttpClient):
    """Requests vectors only if the ledger allows it; an unreachable ledger means no request."""

    def __init__(self, config: EmbeddingConfig, hints: ProviderHints, books: EmbeddingMeter) -> None:
        super().__init__(config, hints)
        self._provider, self._meter = config.provider, books

    async def request(self, method: str, path: str, body: JsonObject | None = None) -> object:
        if body is None:
            return await super().request(method, path)
        call = self._make_reservation(body)
        await self._reserve(call)
        began = time.perf_counter()
        try:
            answer = await super().request(method, path, body)
        except BaseException:
            await self._settle(call, None, "error", began)
            raise
        await self._settle(call, _reported_tokens(answer), "ok", began)
        return answer

    def _make_reservation(self, body: JsonObject) -> Reserve:
        texts = cast("list[str]", body["input"])
        return Reserve(
            call_id=new_id("emb"),
            agent_id=self._meter.name,
            user_id=OWNER,
            message_id=None,
            purpose=PURPOSE,
            provider=self._provider,
            model=str(body["model"]),
            # A text has at most as many tokens as bytes; half of that is far more than real models use.
            estimated_input_tokens=sum(len(text.encode()) // 2 + 8 for text in texts),
            max_output_tokens=0,
        )

    async def _reserve(self, call: Reserve) -> None:
        try:
            async with asyncio.timeout(_LEDGER_SECONDS):
                reservation = await self._meter.ledger.reserve(call)
        except (AnnabelleError, TimeoutError) as error:
            raise EmbeddingsUnavailable("The costs of vectors can not be booked, so none are asked for.") from error
        if not reservation.allowed:
            reason = reservation.reason or "The cost limit is reached, so no vectors are asked for."
            raise EmbeddingsUnavailable(reason, hint=reservation.hint)

    async def _settle(self, call: Reserve, tokens: int | None, outcome: Literal["ok", "error"], began: float) -> None:
        """Settles a call. An unsettled one counts as reserved, so an unreachable ledger loses nothing."""
        used = call.estimated_input_tokens if tokens is None else tokens
        record = ModelCall.from_reservation(call, TokenUsage(input_tokens=used), time.perf_counter() - began, outcome)
        try:
            async with asyncio.timeout(_LEDGER_SECONDS):
                await asyncio.shield(self._meter.ledger.settle(record))
        except (AnnabelleError, TimeoutError) as error:
            _log.warning("vectors could not be settled: %s", error)


def _reported_tokens(answer: object) -> int | None:
    usage = cast("JsonObject", answer).get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict):
        return None
    counted = cast("JsonObject", usage).get("prompt_tokens")
    return counted if isinstance(counted, int) and counted >= 0 else None


class OpenAiEmbeddingProtocol:
    """`/embeddings`, which returns each vector with the index of its text."""

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


_LABELS = {"openai": "OpenAI", "lmstudio": "LM Studio"}


def make(config: EmbeddingConfig, folder: Path | None, books: EmbeddingMeter | None = None) -> HttpEmbedder:
    hints = _find_hints(config)
    charged = books if is_charged(config) else None
    service = EmbeddingHttpClient(config, hints) if charged is None else MeteredHttpService(config, hints, charged)
    protocol = OllamaEmbeddingProtocol() if config.provider == "ollama" else OpenAiEmbeddingProtocol()
    return HttpEmbedder(service, protocol, EmbeddingModelChoice(config.provider, config.model, folder))


def _find_hints(config: EmbeddingConfig) -> ProviderHints:
    if config.provider == "ollama":
        return ProviderHints(
            label="Ollama",
            start="Start it with: ollama serve (or set EMBEDDING_PROVIDER=embedded to do without).",
            model=f"Get it with: ollama pull {config.model}",
        )
    return ProviderHints(
        label=_LABELS.get(config.provider, "The server for embeddings"),
        start="Start it, or set EMBEDDING_PROVIDER=embedded to do without.",
        model="Load the model there, or name another in EMBEDDING_MODEL and restart Annabelle.",
    )
