"""One client per provider, made when it is first used; only then is its library imported."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, cast

from annabelle.core.errors import ConfigMistake
from annabelle.llm.backend import Backend
from annabelle.llm.choose import BETTER, Selection
from annabelle.llm.openai_protocol.backend import OpenAiBackend

if TYPE_CHECKING:
    import annabelle.llm.anthropic_protocol as anthropic_module
    import annabelle.llm.embedded.backend as embedded_module


class Backends:
    """Keeps connections open between calls; `close` ends them and the embedded engine."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Backend] = {}
        self._making = asyncio.Lock()

    async def get(self, selection: Selection) -> Backend:
        embedded = selection.weights is not None
        key = (selection.choice.provider, selection.choice.model if embedded else "")
        async with self._making:
            if key not in self._made:
                self._made[key] = await self._make(selection)
            return self._made[key]

    async def close(self) -> None:
        made, self._made = self._made, {}
        for backend in made.values():
            await backend.close()

    async def _make(self, selection: Selection) -> Backend:
        if selection.weights is not None:
            try:
                module = await asyncio.to_thread(importlib.import_module, "annabelle.llm.embedded.backend")
            except ImportError as error:
                raise ConfigMistake(
                    "No model is configured, and this install came without the embedded engine.",
                    hint=f"Install it: pip install 'annabelle[embedded]'. {BETTER}",
                ) from error
            return cast("embedded_module", module).EmbeddedBackend(selection.weights)
        if selection.place.provider.protocol == "anthropic":
            module = await asyncio.to_thread(importlib.import_module, "annabelle.llm.anthropic_protocol")
            return cast("anthropic_module", module).AnthropicBackend(selection.place)
        return OpenAiBackend(selection.place)
