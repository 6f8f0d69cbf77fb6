"""Prices of model calls, from the table that comes with the install; nothing is fetched.

An unknown model counts as the most expensive one known: a cap that underestimates is no cap (TRU-01).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache

from genai_prices import Usage as PricedUsage, calc_price, data_snapshot
from genai_prices.types import ModelPrice, TieredPrices

from annabelle.core.contract import TokenUsage
from annabelle.llm.providers import PROVIDERS, Endpoint
from annabelle.llm.types import ProviderName

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class ModelPriceUsd:
    """A price, and whether it is the model's own."""

    usd: float
    known: bool = True


def price_call(place: Endpoint, model: str, usage: TokenUsage, cache_written: int = 0) -> ModelPriceUsd:
    """Price of a call; local models are free. Providers may charge extra for the `cache_written` input tokens."""
    if place.provider.local or not (usage.input_tokens or usage.output_tokens):
        return ModelPriceUsd(0.0)
    priced = PricedUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=cache_written,
    )
    try:
        if place.provider.name == "compatible":
            price = calc_price(priced, model, provider_api_url=place.base_url)
        else:
            price = calc_price(priced, model, provider_id=place.provider.name)
    except (LookupError, ValueError):
        dearest = highest_known_prices()
        return ModelPriceUsd(
            float((usage.input_tokens * dearest.input_mtok + usage.output_tokens * dearest.output_mtok) / _MILLION),
            known=False,
        )
    return ModelPriceUsd(float(price.total_price))


def price_ceiling(place: Endpoint, model: str, input_tokens: int, output_tokens: int) -> ModelPriceUsd:
    """The most a call of this size can cost: in the highest tier, with all input written to the provider's cache."""
    units = _token_prices(place.provider.name, place.base_url, model)
    return ModelPriceUsd(input_tokens * units.input + output_tokens * units.output, units.known)


@dataclass(frozen=True, slots=True)
class _TokenPrices:
    """Highest price per token in dollars. Cached, because a lookup takes a quarter of a millisecond."""

    input: float
    output: float
    known: bool


@lru_cache(maxsize=256)
def _token_prices(provider: ProviderName, base_url: str, model: str) -> _TokenPrices:
    place, many = Endpoint(PROVIDERS[provider], base_url), int(_MILLION)
    asked, answered = TokenUsage(input_tokens=many), TokenUsage(input_tokens=many, output_tokens=many)
    plain = price_call(place, model, asked)
    cached = price_call(place, model, asked, cache_written=many) if plain.known else plain
    both = price_call(place, model, answered)
    return _TokenPrices(max(plain.usd, cached.usd) / many, (both.usd - plain.usd) / many, plain.known)


def price_embeddings(provider: str, model: str, tokens: int) -> ModelPriceUsd:
    """Price of an embedding request; an unknown model counts as the most expensive of its kind."""
    try:
        return ModelPriceUsd(
            float(calc_price(PricedUsage(input_tokens=tokens), model, provider_id=provider).total_price)
        )
    except (LookupError, ValueError):
        return ModelPriceUsd(float(tokens * _highest_embedding_price() / _MILLION), known=False)


@cache
def _highest_embedding_price() -> Decimal:
    providers = data_snapshot.get_snapshot().providers
    models = [model for provider in providers for model in provider.models if "embed" in model.id]
    return max(_highest_tier(price.input_mtok) for price in _list_prices(models))


@dataclass(frozen=True, slots=True)
class HighestPrices:
    """Dollars per million tokens."""

    input_mtok: Decimal
    output_mtok: Decimal


@cache
def highest_known_prices() -> HighestPrices:
    prices = [price for provider in data_snapshot.get_snapshot().providers for price in _list_prices(provider.models)]
    return HighestPrices(
        max(_highest_tier(price.input_mtok) for price in prices),
        max(_highest_tier(price.output_mtok) for price in prices),
    )


def _list_prices(models: list[data_snapshot.types.ModelInfo]) -> list[ModelPrice]:
    found: list[ModelPrice] = []
    for model in models:
        found += [model.prices] if isinstance(model.prices, ModelPrice) else [one.prices for one in model.prices]
    return found


def _highest_tier(price: Decimal | TieredPrices | None) -> Decimal:
    if isinstance(price, TieredPrices):
        return max(price.base, *(tier.price for tier in price.tiers))
    return price or Decimal(0)
