"""Asks a local server which models it has."""

from __future__ import annotations

import ssl
from typing import cast

import httpx

from annabelle.core.tools import JsonObject
from annabelle.llm.providers import Endpoint, is_loopback

PROBE_SECONDS = 0.3


async def listed_models(place: Endpoint, seconds: float = PROBE_SECONDS) -> list[str] | None:
    """The models a server lists, those that talk only; None when no server answers there."""
    headers = {"authorization": f"Bearer {place.key_text}"} if place.key_text else {}
    plain = place.base_url.startswith("http://")
    try:
        async with httpx.AsyncClient(
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
            trust_env=not is_loopback(place.base_url),
            timeout=seconds,
        ) as client:
            response = await client.get(f"{place.base_url}/models", headers=headers)
            body = response.json() if response.status_code == 200 else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
    if not isinstance(body, dict):
        return None
    entries = cast("JsonObject", body).get("data")
    if not isinstance(entries, list):
        return []
    names = [
        str(cast("JsonObject", entry).get("id", ""))
        for entry in cast("list[object]", entries)
        if isinstance(entry, dict)
    ]
    return [name for name in names if name and "embed" not in name.lower()]
