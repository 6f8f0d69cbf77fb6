"""Runs recorded conversations through the thinking phase, and holds what would have been sent against what was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolCallPart,
    UserPromptPart,
)

from annabelle.core.contract import ThinkingSettings, TurnBrief, Usage
from annabelle.core.ids import new_id
from annabelle.llm.estimate import estimated_tokens
from annabelle.llm.prices import price_of
from annabelle.llm.providers import PROVIDERS, Endpoint
from annabelle.thinker.compress.judge import lost, needed_by, valid
from annabelle.thinker.compress.phase import ThinkingPhase
from annabelle.thinker.compress.port import ThinkingAsk
from annabelle.thinker.compress.trajectories import Trajectory
from annabelle.thinker.context.repair import repaired

_CHANNEL: Final = "comparison"


@dataclass(slots=True)
class Compared:
    """One conversation, without and with thinking."""

    id: str
    requests: int = 0
    shortened: int = 0
    calls: int = 0
    """Model calls that thinking itself made."""
    tokens_without: int = 0
    tokens_with: int = 0
    output_tokens: int = 0
    milliseconds: float = 0.0
    invalid: int = 0
    needed: int = 0
    lost: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """A tool, and a value it was called with that was not to be seen any more."""

    @property
    def same(self) -> bool:
        """Whether every recorded call could have been made as it was."""
        return not self.lost and not self.invalid


async def compared(trajectory: Trajectory, settings: ThinkingSettings, model: str) -> Compared:
    """What each recorded request would have been with thinking. Rules alone: no model is asked."""
    thinking = ThinkingPhase(settings.model_copy(update={"enabled": True, "model": ""}))
    static, conversation = _parted(trajectory.messages)
    head = estimated_tokens(static, model=model)
    outcome = Compared(trajectory.id)
    brief: TurnBrief | None = None
    goal: ModelRequest | None = None
    for place, message in enumerate(conversation):
        if isinstance(message, ModelRequest):
            if any(isinstance(part, UserPromptPart) for part in message.parts):
                goal, brief = message, _turn()
            continue
        if goal is None or brief is None:
            continue
        before = conversation[:place]
        outcome.requests += 1
        thought = await thinking.think(ThinkingAsk(brief, outcome.requests, before, goal, model=model))
        sent = thought.compressed_history
        outcome.tokens_without += head + estimated_tokens(before, model=model)
        outcome.tokens_with += head + estimated_tokens(sent, model=model)
        outcome.output_tokens += estimated_tokens([message], model=model)
        outcome.shortened += thought.metrics["strategy"] != "none"
        milliseconds = thought.metrics["duration_ms"]
        outcome.milliseconds += milliseconds if isinstance(milliseconds, float) else 0.0
        outcome.invalid += not valid(sent)
        _judge(message, [*static, *before], [*static, *sent], outcome)
    return outcome


def cost(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """In US dollars by the price table, for `provider:model` or a model that one provider has; None if unknown."""
    prefix, colon, rest = model.partition(":")
    named = [one for one in PROVIDERS.values() if colon and one.name == prefix]
    places = named or [one for one in PROVIDERS.values() if not one.local]
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    for provider in places:
        price = price_of(Endpoint(provider, ""), rest if named else model, usage)
        if price.known:
            return price.usd
    return None


def _judge(
    message: ModelResponse, before: Sequence[ModelMessage], sent: Sequence[ModelMessage], outcome: Compared
) -> None:
    for call in (part for part in message.parts if isinstance(part, ToolCallPart)):
        needed = frozenset(needed_by([call], before))
        outcome.needed += len(needed)
        outcome.lost += [(call.tool_name, value) for value in sorted(lost(needed, sent))]


def _parted(messages: Sequence[ModelMessage]) -> tuple[list[ModelMessage], list[ModelMessage]]:
    """What is static, and what was said."""
    chain = repaired(messages)
    static = [one for one in chain if any(isinstance(part, SystemPromptPart) for part in one.parts)]
    return static, [one for one in chain if one not in static]


def _turn() -> TurnBrief:
    message_id = new_id("msg")
    return TurnBrief(
        message_id=message_id, thread_id=_CHANNEL, trace_id=new_id("tr"), channel=_CHANNEL, chat_id=_CHANNEL,
        sender_id=_CHANNEL, text="",
    )  # fmt: skip
