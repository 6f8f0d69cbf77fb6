"""The thinking phase: before each request it decides what of a long conversation goes to the model (CMP-02).

Below the threshold nothing is touched. Above it the conversation is shortened by rules, which cost no call, or by
rules and the notes of a cheap model. What was shortened once in a turn stays as it is and is only added to, until it
has grown too much again: so a provider's cache goes on hitting. Whatever fails here, the loop gets something to send.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from annabelle.core.contract import ThinkingSettings, Usage
from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import JsonObject
from annabelle.llm.estimate import TokenCounter, estimated_tokens
from annabelle.llm.types import ModelRequest as ModelAsk
from annabelle.thinker.compress.blocks import blocks
from annabelle.thinker.compress.changes import state_changes
from annabelle.thinker.compress.cycles import Turns, TurnThoughts, ratio
from annabelle.thinker.compress.losses import context_losses
from annabelle.thinker.compress.notes import Noted, NoteTaker
from annabelle.thinker.compress.port import ThinkingAsk, ThinkingResult
from annabelle.thinker.compress.relevance import Relevance, by_meaning, by_words
from annabelle.thinker.compress.strategies import STRATEGIES, Gauge, SlidingWindow, Strategy
from annabelle.thinker.compress.summary import summary_in, summary_message
from annabelle.thinker.compress.texts import text_of_block

if TYPE_CHECKING:
    from annabelle.embeddings.embedder import Embedder

BUDGET_SHARE: Final = 0.7
"""Of the threshold: a conversation that is shortened has room to grow before it has to be again."""
GROWTH_SHARE: Final = 0.2
_EMBEDDING_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Shortened:
    messages: list[ModelMessage]
    strategy: str
    fresh: bool
    """Worked out now, not added to what was worked out before."""


class ThinkingPhase:
    """One per thinker; it keeps the state of each turn under way."""

    def __init__(
        self,
        settings: ThinkingSettings,
        *,
        note_taker: NoteTaker | None = None,
        embedder: Embedder | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        self._settings, self._embedder = settings, embedder
        self._notes = note_taker if settings.model else None
        self._strategy = strategy or STRATEGIES[settings.strategy]
        self._turns = Turns()
        self.counter = TokenCounter()

    async def think(self, ask: ThinkingAsk) -> ThinkingResult:
        if not self._settings.enabled:
            return ThinkingResult(list(ask.messages))
        began = time.perf_counter()
        turn = self._turns.of(ask.brief.message_id, ask.goal)
        count = partial(self.counter.count, model=ask.model)
        before = count(ask.messages)
        since = ask.messages[turn.seen :] if turn.cycles else ()
        if turn.sent is not None:
            elsewhere = f"{turn.workspace}\n{turn.said}"
            turn.losses += context_losses(ask.messages[: turn.seen], turn.sent, since, elsewhere)
        long = before > self._settings.threshold_tokens
        made = await self._shortened(turn, ask) if long else _Shortened(list(ask.messages), "none", fresh=False)
        noted = await self._noted(ask, made)
        if noted.notes is not None:
            made = _Shortened(with_notes(made.messages, ask.goal, noted.notes.text()), made.strategy, made.fresh)
        if made.fresh:
            turn.worked, turn.shortened, turn.size = len(ask.messages), made.messages, count(made.messages)
        # What stands in the conversation word by word need not be told a second time.
        told = state_changes(since if long else (), turn.workspace, ask.workspace)
        after = count(made.messages) if long else before
        overhead = noted.tokens + self.counter.text(told, ask.model)
        milliseconds = (time.perf_counter() - began) * 1000
        turn.seen, turn.sent, turn.workspace, turn.said = (
            len(ask.messages), made.messages if long else None, ask.workspace, told,
        )  # fmt: skip
        turn.add(before, after, overhead, milliseconds, called=noted.asked, failed=noted.failed)
        return _result(ask, made, noted, told, self._metrics(ask, made, before, after, overhead, milliseconds, noted))

    def learn(self, request: ModelAsk, model: str, usage: Usage) -> None:
        """What a request really had of tokens, as its provider says (CMP-05)."""
        if usage.input_tokens > 0:
            estimated = estimated_tokens(request.messages, request.tools, model)
            self.counter.learn(model, estimated, usage.input_tokens)

    def finished(self, message_id: str, *, success: bool) -> JsonObject:
        """The figures of a turn that is over."""
        return self._turns.over(message_id, success=success)

    def status(self) -> JsonObject:
        """The totals of this process."""
        return {"enabled": self._settings.enabled, "strategy": self._settings.strategy, **self._turns.status()}

    async def _shortened(self, turn: TurnThoughts, ask: ThinkingAsk) -> _Shortened:
        budget = int(self._settings.threshold_tokens * BUDGET_SHARE)
        count = partial(self.counter.count, model=ask.model)
        if turn.worked:
            longer = [*turn.shortened, *ask.messages[turn.worked :]]
            if count(longer) <= turn.size + budget * GROWTH_SHARE:
                return _Shortened(longer, self._settings.strategy, fresh=False)
        for name, strategy in ((self._settings.strategy, self._strategy), ("sliding-window", SlidingWindow())):
            try:
                # In a thread: a very long conversation takes a while, and other turns go on meanwhile.
                gauge = Gauge(count, await self._relevance(ask))
                messages = await asyncio.to_thread(strategy.compress, ask.messages, ask.goal, budget, gauge)
            except Exception:  # noqa: BLE001  the edge of what a turn can do without: it goes on with what it has
                _log.exception("the strategy %s failed", name)
                turn.recoveries += 1
            else:
                note = self._note(count(ask.messages), count(messages), name)
                return _Shortened(_before_goal(messages, ask.goal, note), name, fresh=True)
        return _Shortened(list(ask.messages), "none", fresh=False)

    async def _relevance(self, ask: ThinkingAsk) -> Relevance:
        if self._embedder is None or self._settings.strategy not in ("adaptive", "semantic"):
            return by_words
        texts = [text_of_block(block.messages) for block in blocks(ask.messages, ask.goal)]
        try:
            async with asyncio.timeout(_EMBEDDING_SECONDS):
                return await by_meaning(self._embedder, texts, text_of_block([ask.goal]))
        except (AnnabelleError, TimeoutError, ValueError) as error:  # the last: vectors of two lengths
            _log.info("relevance goes by words: %s", type(error).__name__)
            return by_words

    async def _noted(self, ask: ThinkingAsk, made: _Shortened) -> Noted:
        if self._notes is None:
            return Noted()
        kept = {id(message) for message in made.messages}
        left_out = [message for message in ask.messages if id(message) not in kept] if made.fresh else []
        return await self._notes.take(ask.brief, ask.step, ask.goal, left_out)

    def _note(self, before: int, after: int, strategy: str) -> str:
        if not self._settings.note_in_history:
            return ""
        return f"[Thinking] The conversation was shortened from {before} to {after} tokens ({strategy})."

    def _metrics(
        self, ask: ThinkingAsk, made: _Shortened, before: int, after: int, overhead: int, ms: float, noted: Noted
    ) -> JsonObject:
        return {
            "message_id": ask.brief.message_id,
            "step": ask.step,
            "strategy": made.strategy,
            "tokens_before": before,
            "tokens_after": after,
            "ratio": ratio(before, after),
            "overhead_tokens": overhead,
            "calls": int(noted.asked),
            "fresh": made.fresh,
            "duration_ms": round(ms, 1),
        }


def with_notes(messages: Sequence[ModelMessage], goal: ModelRequest, notes: str) -> list[ModelMessage]:
    """The notes of the model ahead of what the rules kept; a section of their own where the rules dropped nothing."""
    found = summary_in(messages)
    # What the user wrote may look like a summary of ours.
    if found is None or messages[found[0]] is goal:
        return _before_goal(messages, goal, notes, section=True)
    place, text = found
    return [*messages[:place], summary_message(f"{notes}\n{text}"), *messages[place + 1 :]]


def _before_goal(
    messages: Sequence[ModelMessage], goal: ModelRequest, text: str, *, section: bool = False
) -> list[ModelMessage]:
    if not text:
        return list(messages)
    place = next(place for place, message in enumerate(messages) if message is goal)
    told = summary_message(text) if section else ModelRequest(parts=[UserPromptPart(content=text)])
    return [*messages[:place], told, *messages[place:]]


def _result(ask: ThinkingAsk, made: _Shortened, noted: Noted, told: str, metrics: JsonObject) -> ThinkingResult:
    summary = summary_in(made.messages)
    notes = noted.notes
    return ThinkingResult(
        compressed_history=made.messages,
        summary=notes.summary if notes is not None else summary[1] if summary is not None else "",
        current_state=notes.current_state if notes is not None else told,
        insights=notes.insights if notes is not None else (),
        next_actions=notes.next_actions if notes is not None else text_of_block([ask.goal])[:200],
        thinking_tokens=noted.tokens,
        context=told,
        metrics=metrics,
    )
