"""The thinking phase: before each request it compresses a long conversation (CMP-02).

Below the threshold nothing changes. Above it the conversation is compressed by rules, or by rules and the notes of a
cheap model. Within a turn the compressed conversation is only appended to until it has grown too much again, so that a
provider's cache hits. If anything fails here, the loop still gets messages to send.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from annabelle.core.contract import ThinkingSettings, TokenUsage
from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import JsonObject
from annabelle.llm.token_estimate import TokenCounter, estimate_tokens
from annabelle.llm.types import ModelRequest as ModelAsk
from annabelle.thinker.compression.context_loss import count_context_losses
from annabelle.thinker.compression.conversation_draft import split_into_blocks
from annabelle.thinker.compression.message_text import describe_changes, render_messages
from annabelle.thinker.compression.model_notes import NotesOutcome, NoteTaker
from annabelle.thinker.compression.port import CompressionRequest, CompressionResult
from annabelle.thinker.compression.rule_notes import take_rule_notes
from annabelle.thinker.compression.strategies import (
    STRATEGIES,
    CompressionMeasures,
    CompressionStrategy,
    Relevance,
    SlidingWindow,
    make_meaning_relevance,
    score_by_words,
)
from annabelle.thinker.compression.summary import find_summary, make_summary_message

if TYPE_CHECKING:
    from annabelle.embeddings.embedder import Embedder


_MAX_OPEN_TURNS = 64
_COUNTED = (
    "cycles",
    "shortened",
    "tokens_before",
    "tokens_after",
    "overhead_tokens",
    "calls",
    "recoveries",
    "context_losses",
)


@dataclass(slots=True)
class TurnCompression:
    """The state of one turn: what was sent last, and the metrics."""

    goal: ModelRequest
    seen: int = 0
    """Number of messages at the last cycle."""
    sent: Sequence[ModelMessage] | None = None
    """The compressed messages of the last cycle; None if it was not compressed."""
    worked: int = 0
    """Number of messages at the last compression, whose result is `shortened`."""
    shortened: list[ModelMessage] = field(default_factory=list[ModelMessage])
    size: int = 0
    workspace: str = ""
    said: str = ""
    """The changes shown to the model at the last cycle."""
    counts: Counter[str] = field(default_factory=Counter[str])
    """The metrics of `_COUNTED`."""
    milliseconds: float = 0.0

    def add_cycle(self, cycle: dict[str, int], milliseconds: float, *, failed: bool) -> None:
        shortened = cycle["tokens_after"] < cycle["tokens_before"]
        self.counts.update({**cycle, "cycles": 1, "shortened": int(shortened), "recoveries": int(failed)})
        self.milliseconds += milliseconds

    def summary(self, *, success: bool) -> JsonObject:
        return {"success": success, **_with_ratio(self.counts), "thinking_ms": round(self.milliseconds, 1)}


class CompressionTurns:
    """The running turns by message id, and the totals of finished ones."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, TurnCompression] = OrderedDict()
        self._totals: Counter[str] = Counter(turns=0, succeeded=0)

    def get(self, message_id: str, goal: ModelRequest) -> TurnCompression:
        """The state of a turn; a fresh one if the turn was restarted, as after a crash."""
        known = self._open.get(message_id)
        if known is None or known.goal is not goal:
            known = self._open[message_id] = TurnCompression(goal)
            if len(self._open) > _MAX_OPEN_TURNS:
                self._open.popitem(last=False)
        return known

    def finish_turn(self, message_id: str, *, success: bool) -> JsonObject:
        """The metrics of a finished turn; empty if it had no cycle."""
        turn = self._open.pop(message_id, None)
        if turn is None:
            return {}
        self._totals.update({**turn.counts, "turns": 1, "succeeded": int(success)})
        return turn.summary(success=success)

    def status(self) -> JsonObject:
        return {**self._totals, **_with_ratio(self._totals)}


def _with_ratio(counts: Counter[str]) -> JsonObject:
    ratio = compression_ratio(counts["tokens_before"], counts["tokens_after"])
    return {**{name: counts[name] for name in _COUNTED}, "ratio": ratio}


def compression_ratio(before: int, after: int) -> float:
    """Tokens after divided by tokens before."""
    return round(after / before, 4) if before else 1.0


BUDGET_SHARE: Final = 0.7
"""Share of the threshold to compress to, so that the conversation has room to grow."""
GROWTH_SHARE: Final = 0.2
_EMBEDDING_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _CompressedMessages:
    messages: list[ModelMessage]
    strategy: str
    fresh: bool
    """Compressed in this cycle, not just appended to."""


class ContextCompressor:
    """One per thinker; keeps the state of each running turn."""

    def __init__(
        self,
        settings: ThinkingSettings,
        *,
        note_taker: NoteTaker | None = None,
        embedder: Embedder | None = None,
        strategy: CompressionStrategy | None = None,
    ) -> None:
        self._settings, self._embedder = settings, embedder
        self._note_taker = note_taker if settings.model else None
        self._strategy = strategy or STRATEGIES[settings.strategy]
        self._turns = CompressionTurns()
        self.counter = TokenCounter()

    async def think(self, ask: CompressionRequest) -> CompressionResult:
        if not self._settings.enabled:
            return CompressionResult(list(ask.messages))
        began = time.perf_counter()
        turn = self._turns.get(ask.brief.message_id, ask.goal)
        count = partial(self.counter.count, model=ask.model)
        before = count(ask.messages)
        since = ask.messages[turn.seen :] if turn.counts["cycles"] else ()
        if turn.sent is not None:
            elsewhere = f"{turn.workspace}\n{turn.said}"
            losses = count_context_losses(ask.messages[: turn.seen], turn.sent, since, elsewhere)
            turn.counts["context_losses"] += losses
        long = before > self._settings.threshold_tokens
        made = (
            await self._compress_messages(turn, ask)
            if long
            else _CompressedMessages(list(ask.messages), "none", fresh=False)
        )
        noted = await self._take_notes(ask, made)
        if noted.notes is not None:
            made = _CompressedMessages(
                insert_notes(made.messages, ask.goal, noted.notes.render()), made.strategy, made.fresh
            )
        if made.fresh:
            turn.worked, turn.shortened, turn.size = len(ask.messages), made.messages, count(made.messages)
        # An uncompressed conversation already shows what changed.
        told = describe_changes(since if long else (), turn.workspace, ask.workspace)
        after = count(made.messages) if long else before
        cycle = {
            "tokens_before": before,
            "tokens_after": after,
            "overhead_tokens": noted.tokens + self.counter.count_text(told, ask.model),
            "calls": int(noted.asked),
        }
        milliseconds = (time.perf_counter() - began) * 1000
        turn.seen, turn.sent, turn.workspace, turn.said = (
            len(ask.messages), made.messages if long else None, ask.workspace, told,
        )  # fmt: skip
        turn.add_cycle(cycle, milliseconds, failed=noted.failed)
        metrics: JsonObject = {
            "message_id": ask.brief.message_id,
            "step": ask.step,
            "strategy": made.strategy,
            **cycle,
            "ratio": compression_ratio(before, after),
            "fresh": made.fresh,
            "duration_ms": round(milliseconds, 1),
        }
        return _make_result(ask, made, noted, told, metrics)

    def learn(self, request: ModelAsk, model: str, usage: TokenUsage) -> None:
        """Correct the token estimate by the provider's usage (CMP-05)."""
        if usage.input_tokens > 0:
            estimated = estimate_tokens(request.messages, request.tools, model)
            self.counter.learn(model, estimated, usage.input_tokens)

    def finished(self, message_id: str, *, success: bool) -> JsonObject:
        """The metrics of a finished turn."""
        return self._turns.finish_turn(message_id, success=success)

    def status(self) -> JsonObject:
        """The totals of this process."""
        return {"enabled": self._settings.enabled, "strategy": self._settings.strategy, **self._turns.status()}

    async def _compress_messages(self, turn: TurnCompression, ask: CompressionRequest) -> _CompressedMessages:
        budget = int(self._settings.threshold_tokens * BUDGET_SHARE)
        count = partial(self.counter.count, model=ask.model)
        if turn.worked:
            longer = [*turn.shortened, *ask.messages[turn.worked :]]
            if count(longer) <= turn.size + budget * GROWTH_SHARE:
                return _CompressedMessages(longer, self._settings.strategy, fresh=False)
        for name, strategy in ((self._settings.strategy, self._strategy), ("sliding-window", SlidingWindow())):
            try:
                # In a thread, because a very long conversation takes a while.
                gauge = CompressionMeasures(count, await self._choose_relevance(ask))
                messages = await asyncio.to_thread(strategy.compress, ask.messages, ask.goal, budget, gauge)
            except Exception:  # noqa: BLE001  the edge of what a turn can do without: it goes on with what it has
                _log.exception("the strategy %s failed", name)
                turn.counts["recoveries"] += 1
            else:
                note = self._history_note(count(ask.messages), count(messages), name)
                return _CompressedMessages(_insert_before_goal(messages, ask.goal, note), name, fresh=True)
        return _CompressedMessages(list(ask.messages), "none", fresh=False)

    async def _choose_relevance(self, ask: CompressionRequest) -> Relevance:
        if self._embedder is None or self._settings.strategy not in ("adaptive", "semantic"):
            return score_by_words
        texts = [render_messages(block.messages) for block in split_into_blocks(ask.messages, ask.goal)]
        try:
            async with asyncio.timeout(_EMBEDDING_SECONDS):
                return await make_meaning_relevance(self._embedder, texts, render_messages([ask.goal]))
        except (AnnabelleError, TimeoutError, ValueError) as error:  # the last: vectors of two lengths
            _log.info("relevance goes by words: %s", type(error).__name__)
            return score_by_words

    async def _take_notes(self, ask: CompressionRequest, made: _CompressedMessages) -> NotesOutcome:
        if self._note_taker is None:
            return NotesOutcome()
        kept = {id(message) for message in made.messages}
        left_out = [message for message in ask.messages if id(message) not in kept] if made.fresh else []
        return await self._note_taker.take_notes(ask.brief, ask.step, ask.goal, left_out)

    def _history_note(self, before: int, after: int, strategy: str) -> str:
        if not self._settings.note_in_history:
            return ""
        return f"[Thinking] The conversation was shortened from {before} to {after} tokens ({strategy})."


def insert_notes(messages: Sequence[ModelMessage], goal: ModelRequest, notes: str) -> list[ModelMessage]:
    """Put the notes before the rules' summary, or in a section of their own if there is none."""
    found = find_summary(messages)
    # The user's own message may look like a summary.
    if found is None or messages[found[0]] is goal:
        return _insert_before_goal(messages, goal, notes, section=True)
    place, text = found
    return [*messages[:place], make_summary_message(f"{notes}\n{text}"), *messages[place + 1 :]]


def _insert_before_goal(
    messages: Sequence[ModelMessage], goal: ModelRequest, text: str, *, section: bool = False
) -> list[ModelMessage]:
    if not text:
        return list(messages)
    place = next(place for place, message in enumerate(messages) if message is goal)
    told = make_summary_message(text) if section else ModelRequest(parts=[UserPromptPart(content=text)])
    return [*messages[:place], told, *messages[place:]]


def _make_result(
    ask: CompressionRequest, made: _CompressedMessages, noted: NotesOutcome, told: str, metrics: JsonObject
) -> CompressionResult:
    notes = noted.notes
    if notes is not None:
        summary, state, insights, actions = notes.summary, notes.current_state, notes.insights, notes.next_actions
    else:
        found, rules = find_summary(made.messages), take_rule_notes(ask.messages, ask.goal, ask.open_tasks)
        summary, state, insights, actions = found[1] if found else "", told, rules.insights, rules.next_actions
    return CompressionResult(
        compressed_history=made.messages,
        summary=summary,
        current_state=state,
        insights=insights,
        next_actions=actions,
        thinking_tokens=noted.tokens,
        context=told,
        metrics=metrics,
    )
