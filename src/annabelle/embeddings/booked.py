"""Books every request for vectors that somebody charges for: reserved before, settled after (CST-09, TRU-01)."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final, Literal, cast

from annabelle.core.contract import ModelCall, Reserve, Usage
from annabelle.core.errors import AnnabelleError
from annabelle.core.ids import new_id
from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.embeddings.books import PURPOSE, Books
from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedder import EmbeddingsUnavailable
from annabelle.embeddings.http_service import Hints, HttpService

_LEDGER_SECONDS: Final = 30.0
_log = logging.getLogger(__name__)


class BookedService(HttpService):
    """Asks for vectors only when the ledger agrees. A ledger that can not be asked means no request."""

    def __init__(self, config: EmbeddingConfig, hints: Hints, books: Books) -> None:
        super().__init__(config, hints)
        self._provider, self._books = config.provider, books

    async def ask(self, method: str, path: str, body: JsonObject | None = None) -> object:
        if body is None:
            return await super().ask(method, path)
        call = self._call(body)
        await self._reserve(call)
        began = time.perf_counter()
        try:
            answer = await super().ask(method, path, body)
        except BaseException:
            await self._settle(call, None, "error", began)
            raise
        await self._settle(call, _tokens(answer), "ok", began)
        return answer

    def _call(self, body: JsonObject) -> Reserve:
        texts = cast("list[str]", body["input"])
        return Reserve(
            call_id=new_id("emb"),
            agent_id=self._books.name,
            user_id=OWNER,
            message_id=None,
            purpose=PURPOSE,
            provider=self._provider,
            model=str(body["model"]),
            # No model cuts a text into more tokens than it has bytes; half of them is far more than any does.
            estimated_input_tokens=sum(len(text.encode()) // 2 + 8 for text in texts),
            max_output_tokens=0,
        )

    async def _reserve(self, call: Reserve) -> None:
        try:
            async with asyncio.timeout(_LEDGER_SECONDS):
                reservation = await self._books.ledger.reserve(call)
        except (AnnabelleError, TimeoutError) as error:
            raise EmbeddingsUnavailable("The costs of vectors can not be booked, so none are asked for.") from error
        if not reservation.allowed:
            reason = reservation.reason or "The cost limit is reached, so no vectors are asked for."
            raise EmbeddingsUnavailable(reason, hint=reservation.hint)

    async def _settle(self, call: Reserve, tokens: int | None, outcome: Literal["ok", "error"], began: float) -> None:
        """What is not settled counts as what was reserved, so a ledger that is away now loses nothing."""
        used = call.estimated_input_tokens if tokens is None else tokens
        record = ModelCall.of(call, Usage(input_tokens=used), time.perf_counter() - began, outcome)
        try:
            async with asyncio.timeout(_LEDGER_SECONDS):
                await asyncio.shield(self._books.ledger.settle(record))
        except (AnnabelleError, TimeoutError) as error:
            _log.warning("vectors could not be settled: %s", error)


def _tokens(answer: object) -> int | None:
    """What the provider says it counted."""
    usage = cast("JsonObject", answer).get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict):
        return None
    counted = cast("JsonObject", usage).get("prompt_tokens")
    return counted if isinstance(counted, int) and counted >= 0 else None
