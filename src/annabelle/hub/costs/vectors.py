"""Prices embedding requests, so that callers need not load the price table."""

from __future__ import annotations

import asyncio
from typing import Final

from annabelle.core.contract import ModelCall, Reserve
from annabelle.llm.prices import price_embeddings

# Servers with the same model may count tokens differently.
_MARGIN: Final = 2


async def priced_request(request: Reserve) -> Reserve:
    tokens = request.estimated_input_tokens * _MARGIN
    price = await asyncio.to_thread(price_embeddings, request.provider, request.model, tokens)
    return request.model_copy(update={"reserved_usd": price.usd, "price_known": price.known})


async def priced_call(call: ModelCall) -> ModelCall:
    price = await asyncio.to_thread(price_embeddings, call.provider, call.model, call.usage.input_tokens)
    return call.model_copy(update={"usage": call.usage.model_copy(update={"cost_usd": price.usd})})
