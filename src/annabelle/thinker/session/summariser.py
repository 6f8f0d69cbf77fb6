"""Asks the cheap model for the summary of a conversation; without a good model, rules write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelMessage

from annabelle.core.errors import ProviderFailed
from annabelle.core.ids import new_id
from annabelle.core.secrets.redactor import Redactor
from annabelle.llm.types import ModelRequest
from annabelle.thinker.compression.message_text import response_text
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.prompt.token_budget import truncate_to_tokens
from annabelle.thinker.session import summary_prompts
from annabelle.thinker.session.records import SessionTurn
from annabelle.thinker.summary_model import ThinkerModel, ask_once, is_too_small

# More than a summary may have: some models reason first.
_MOST_OUTPUT_TOKENS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    text: str
    by_model: bool


class Summariser:
    """One per thinker. Summaries hold no secrets and have a bounded length."""

    def __init__(self, model: ThinkerModel, costs: CostMeter) -> None:
        self._model, self._costs = model, costs

    async def summarise_older_turns(self, turns: Sequence[SessionTurn], previous: str) -> ConversationSummary:
        """The summary that replaces these turns. Raises if the model fails, so that nothing is lost."""
        if await is_too_small(self._model):
            return ConversationSummary(
                _clean_summary(summary_prompts.digest_older_turns(turns, previous), summary_prompts.COMPACTION_TOKENS),
                by_model=False,
            )
        answer = await self._ask(summary_prompts.build_compaction_prompt(turns, previous), turns[-1])
        return ConversationSummary(_clean_summary(answer, summary_prompts.COMPACTION_TOKENS), by_model=True)

    async def summarise_conversation(self, turns: Sequence[SessionTurn], before: str) -> ConversationSummary:
        """What a conversation was about. Raises if the model fails; see `summarise_without_model`."""
        if await is_too_small(self._model):
            return ConversationSummary(summarise_without_model(turns, before), by_model=False)
        answer = await self._ask(summary_prompts.build_closing_prompt(turns, before), turns[-1])
        return ConversationSummary(
            _clean_summary(" ".join(answer.split()), summary_prompts.CLOSING_TOKENS), by_model=True
        )

    async def _ask(self, messages: list[ModelMessage], last: SessionTurn) -> str:
        request = ModelRequest(
            # New in every try: a call of a killed process is billed on its own.
            call_id=f"{last.message_id}:{new_id('mc')}",
            messages=messages,
            purpose="summary",
            temperature=0.0,
            max_tokens=_MOST_OUTPUT_TOKENS,
            user_id=last.user_id,
            trace_id=last.trace_id,
        )
        completed = await ask_once(self._model, request, self._costs)
        text = response_text(completed.response).strip()
        if not text:
            raise ProviderFailed("The model summed up nothing.")
        return text


def summarise_without_model(turns: Sequence[SessionTurn], before: str) -> str:
    """What the user wrote, for when the model fails."""
    return _clean_summary(summary_prompts.digest_conversation(turns, before), summary_prompts.CLOSING_TOKENS)


def _clean_summary(text: str, most: int) -> str:
    return truncate_to_tokens(Redactor()(text), most)
