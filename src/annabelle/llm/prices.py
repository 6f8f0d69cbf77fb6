"""What a model call costs, from the price table that comes with the install; an unknown price is None, not zero."""

from __future__ import annotations

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from annabelle.core.contract import Usage
from annabelle.llm.providers import Endpoint


def cost_of(place: Endpoint, model: str, usage: Usage) -> float | None:
    """The price in US dollars. Models on the own machine cost nothing; nothing is fetched from anywhere."""
    if place.provider.local or not (usage.input_tokens or usage.output_tokens):
        return 0.0
    priced = PricedUsage(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cache_read_tokens=usage.cached_tokens
    )
    try:
        if place.provider.name == "compatible":
            price = calc_price(priced, model, provider_api_url=place.base_url)
        else:
            price = calc_price(priced, model, provider_id=place.provider.name)
    except (LookupError, ValueError):
        return None
    return float(price.total_price)


def warm() -> None:
    """Read the table now: the first look costs a fifth of a second that no answer should wait for."""
    try:
        calc_price(PricedUsage(input_tokens=1), "gpt-5-mini", provider_id="openai")
    except LookupError:
        return
