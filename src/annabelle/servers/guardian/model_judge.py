"""Asks a guard model over HTTP, such as Granite Guardian in Ollama or a safeguard model at Groq."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import TYPE_CHECKING, Final, cast

import httpx2 as httpx

from annabelle.core.contract import ModelCall, Reserve, TokenUsage
from annabelle.core.errors import AnnabelleError, Unavailable
from annabelle.core.ids import new_id
from annabelle.core.messages import OWNER
from annabelle.core.network_access import trust_store
from annabelle.core.tools import JsonObject
from annabelle.llm.providers import is_loopback
from annabelle.servers.guardian.config import ModelConfig
from annabelle.servers.guardian.guard_model import GuardAnswer, build_request, parse_answer

if TYPE_CHECKING:
    from annabelle.core.ports import Ledger

_log = logging.getLogger(__name__)

_RETRIES: Final = 3
_BUSY: Final = 429
_BOOKING_SECONDS: Final = 5.0
_LARGEST_ANSWER: Final = 1_000_000
PURPOSE: Final = "guardian"


class ModelJudge:
    """A guard model. The cost of remote calls is reserved before and settled after."""

    def __init__(self, config: ModelConfig, ledger: Ledger | None, pause: float = 3.0) -> None:
        """`pause`: seconds before a busy service is asked again."""
        self._config, self._pause = config, pause
        self._ledger = None if is_loopback(config.endpoint.base_url) else ledger
        headers = {"content-type": "application/json"}
        if config.endpoint.key_text:
            headers["authorization"] = f"Bearer {config.endpoint.key_text}"
        url = config.endpoint.base_url
        self._http = httpx.AsyncClient(
            headers=headers, timeout=config.seconds, verify=trust_store(url), trust_env=not is_loopback(url)
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(self, text: str, context: str) -> GuardAnswer | None:
        """Return the model's verdict, or None if it is unclear. Raises Unavailable if there is no answer in time."""
        body = build_request(self._config, text, context)
        label = self._config.endpoint.provider.label
        try:
            async with asyncio.timeout(self._config.seconds):
                call = await self._reserve(body)
                began = time.perf_counter()
                answer = await self._exchange(body)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Unavailable(
                f"The guardian's model gave no answer within {self._config.seconds:g} seconds.",
                hint=f"See whether {label} is busy, or set GUARDIAN_PROVIDER=embedded.",
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
            raise Unavailable(
                f"{label} does not answer the guardian as it should.",
                hint=f"See whether it runs and has the model {self._config.model}, or set GUARDIAN_PROVIDER=embedded.",
            ) from error
        await self._settle(call, answer, began)
        return parse_answer(_answer_text(answer))

    async def _exchange(self, body: JsonObject) -> JsonObject:
        url = f"{self._config.endpoint.base_url}/chat/completions"
        content = json.dumps(body).encode("utf-8", errors="replace")
        response = await self._http.post(url, content=content)
        for _ in range(_RETRIES):
            if response.status_code != _BUSY:
                break
            await asyncio.sleep(self._pause)
            response = await self._http.post(url, content=content)
        response.raise_for_status()
        if len(response.content) > _LARGEST_ANSWER:
            raise ValueError("too long")
        answer: object = json.loads(response.content)
        if not isinstance(answer, dict):
            raise ValueError("no object")
        return cast("JsonObject", answer)

    async def _reserve(self, body: JsonObject) -> Reserve | None:
        if self._ledger is None:
            return None
        call = Reserve(
            call_id=new_id("grd"),
            agent_id="guardian",
            user_id=OWNER,
            message_id=None,
            purpose=PURPOSE,
            provider=self._config.endpoint.provider.name,
            model=self._config.model,
            estimated_input_tokens=len(json.dumps(body["messages"])) // 2,
            max_output_tokens=1_000,
        )
        try:
            reservation = await self._ledger.reserve(call)
        except AnnabelleError as error:
            raise Unavailable("What the guardian's model costs can not be booked, so it is not asked.") from error
        if not reservation.allowed:
            raise Unavailable(
                reservation.reason or "The cost limit is reached, so the guardian's model is not asked.",
                hint=reservation.hint or "Set GUARDIAN_PROVIDER=embedded, which costs nothing.",
            )
        return call

    async def _settle(self, call: Reserve | None, answer: JsonObject, began: float) -> None:
        """Settle the cost. Without it the reserved amount counts, so an unavailable ledger loses nothing."""
        if call is None or self._ledger is None:
            return
        record = ModelCall.from_reservation(call, _read_usage(answer, call), time.perf_counter() - began)
        try:
            async with asyncio.timeout(_BOOKING_SECONDS):
                await self._ledger.settle(record)
        except (AnnabelleError, TimeoutError) as error:
            _log.warning("a question to the guardian's model could not be settled: %s", error)


def _answer_text(answer: JsonObject) -> str:
    choices = answer.get("choices")
    first: object = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
    message = cast("JsonObject", first).get("message") if isinstance(first, dict) else None
    content = cast("JsonObject", message).get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""


def _read_usage(answer: JsonObject, call: Reserve) -> TokenUsage:
    counted = answer.get("usage")
    usage = cast("JsonObject", counted) if isinstance(counted, dict) else {}

    def count_tokens(name: str, otherwise: int) -> int:
        value = usage.get(name)
        return value if isinstance(value, int) and value >= 0 else otherwise

    return TokenUsage(
        input_tokens=count_tokens("prompt_tokens", call.estimated_input_tokens),
        output_tokens=count_tokens("completion_tokens", 0),
    )
