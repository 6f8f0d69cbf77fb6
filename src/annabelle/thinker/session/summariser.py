"""Asks the cheap model to sum up a conversation; where no model can, rules do it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelMessage

from annabelle.core.errors import ProviderFailed
from annabelle.core.ids import new_id
from annabelle.core.redact import Redactor
from annabelle.llm.registry import PACKAGED
from annabelle.llm.types import Completed, ModelRequest
from annabelle.thinker.context.budget import shortened
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.loop.bench import Model
from annabelle.thinker.loop.calls import text_of
from annabelle.thinker.session import digest, summary_prompts
from annabelle.thinker.session.records import TurnRecord

# More than a summary may have: some models think aloud first, and that is cut off with it.
_MOST_OUTPUT_TOKENS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Summary:
    text: str
    by_model: bool


class Summariser:
    """One per thinker. What it returns holds no secret and has a bounded length."""

    def __init__(self, model: Model, costs: CostMeter) -> None:
        self._model, self._costs = model, costs

    async def of_older_turns(self, turns: Sequence[TurnRecord], previous: str) -> Summary:
        """What stands in the place of these turns from now on. A model that fails raises: nothing may be lost."""
        if await self._too_small():
            return Summary(_tidy(digest.of_older_turns(turns, previous), digest.COMPACTION_TOKENS), by_model=False)
        answer = await self._ask(summary_prompts.compaction(turns, previous), turns[-1])
        return Summary(_tidy(answer, digest.COMPACTION_TOKENS), by_model=True)

    async def of_conversation(self, turns: Sequence[TurnRecord], before: str) -> Summary:
        """What a conversation was about. A model that fails raises; `extracted` needs none."""
        if await self._too_small():
            return Summary(extracted(turns, before), by_model=False)
        answer = await self._ask(summary_prompts.closing(turns, before), turns[-1])
        return Summary(_tidy(" ".join(answer.split()), digest.CLOSING_TOKENS), by_model=True)

    async def _too_small(self) -> bool:
        """The packaged model makes things up, and would keep a processor busy for half a minute doing so."""
        choice = await self._model.choose("summary")
        return choice.provider == "embedded" and choice.model == PACKAGED

    async def _ask(self, messages: list[ModelMessage], last: TurnRecord) -> str:
        request = ModelRequest(
            # New in every try: the call that a killed process made was a call of its own.
            call_id=f"{last.message_id}:{new_id('mc')}",
            messages=messages,
            purpose="summary",
            temperature=0.0,
            max_tokens=_MOST_OUTPUT_TOKENS,
            user_id=last.user_id,
            trace_id=last.trace_id,
        )
        completed: Completed | None = None
        async with aclosing(self._model.request(request)) as events:
            async for event in events:
                if isinstance(event, Completed):
                    completed = event
        if completed is None:
            raise ProviderFailed("The model gave no answer.")
        self._costs.add(completed.usage)
        text = text_of(completed.response).strip()
        if not text:
            raise ProviderFailed("The model summed up nothing.")
        return text


def extracted(turns: Sequence[TurnRecord], before: str) -> str:
    """What the user wrote, for when a model fails."""
    return _tidy(digest.of_conversation(turns, before), digest.CLOSING_TOKENS)


def _tidy(text: str, most: int) -> str:
    return shortened(Redactor()(text), most)
