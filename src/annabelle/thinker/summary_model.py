"""What the thinker needs of the model service, and one-shot calls of the cheap model for summaries, notes and facts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from annabelle.core.errors import ProviderFailed
from annabelle.llm.gguf_models import PACKAGED
from annabelle.llm.types import Completed, ModelChoice, ModelEvent, ModelRequest, Purpose
from annabelle.thinker.costs import CostMeter


class ThinkerModel(Protocol):
    """What the thinker needs of the model service."""

    async def choose(self, purpose: Purpose = "chat") -> ModelChoice: ...

    def request(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]: ...


async def ask_once(model: ThinkerModel, request: ModelRequest, costs: CostMeter) -> Completed:
    """Ask without streaming, and count the cost. Raises ProviderFailed if there is no answer."""
    completed: Completed | None = None
    async with aclosing(model.request(request)) as events:
        async for event in events:
            if isinstance(event, Completed):
                completed = event
    if completed is None:
        raise ProviderFailed("The model gave no answer.")
    costs.add(completed.usage)
    return completed


async def is_too_small(model: ThinkerModel) -> bool:
    """Whether only the packaged model is there: it invents things, and takes half a minute to do so."""
    return is_packaged(await model.choose("summary"))


def is_packaged(choice: ModelChoice) -> bool:
    return choice.provider == "embedded" and choice.model == PACKAGED
