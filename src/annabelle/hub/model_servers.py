"""Tells the owner when a model server of their own, such as Ollama, goes away or comes back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from annabelle.core.background import BackgroundTasks
from annabelle.core.settings import Settings
from annabelle.hub.agents.config import AgentsConfig
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.base import HubBase
from annabelle.llm.providers import PROVIDERS, Endpoint, is_loopback, make_endpoint

_CONNECT_SECONDS: Final = 3.0


def name_providers(settings: Settings, agents: AgentsConfig) -> set[str]:
    """The providers that settings and agents name."""
    models = [settings.llm_summary_model, settings.llm_thinking_model, settings.llm_reader_model]
    models += [settings.guardian_model, *settings.llm_fallbacks.split(",")]
    models += [settings.thinker_llm_provider, *(agent.llm_provider or "" for agent in agents.agents)]
    return {name.strip().lower().partition(":")[0] for name in models}


class ModelServerWatch:
    """Connects from time to time, and tells changes. How it was at the start is for the diagnosis to say."""

    def __init__(self, base: HubBase, registry: AgentRegistry) -> None:
        self._base, self._registry = base, registry
        self._answers: dict[str, bool] = {}
        self._tasks = BackgroundTasks()

    async def start(self) -> None:
        self._tasks.start(self._watch())

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _watch(self) -> None:
        while True:
            for place in self._list_local():
                await self._check(place)
            await asyncio.sleep(self._base.settings.model_server_check_seconds)

    def _list_local(self) -> Iterator[Endpoint]:
        named = name_providers(self._base.settings, self._registry.config)
        for provider in PROVIDERS.values():
            place = make_endpoint(self._base.settings, provider)
            if provider.name in named and is_loopback(place.base_url):
                yield place

    async def _check(self, place: Endpoint) -> None:
        address, there = place.base_url, await _can_connect(place.base_url)
        before = self._answers.get(address, there)
        self._answers[address] = there
        if there == before:
            return
        who = f"{place.provider.label} at {address}"
        text = f"{who} answers again." if there else f"{who} does not answer any more. Agents need it."
        text = text[0].upper() + text[1:]
        self._base.notices.add(f"model_server:{address}", text, "info" if there else "warning", tell_owner=True)


async def _can_connect(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
