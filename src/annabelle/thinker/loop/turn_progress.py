"""How far a turn has come, the limits that end it early (LOOP-02, LOOP-10), and how a run of the loop ended."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, ConfigDict
from pydantic_ai.messages import ModelMessage

from annabelle.core.contract import ParkedTurn, TokenUsage, TurnLimits
from annabelle.core.errors import ErrorBody
from annabelle.core.tools import JsonObject
from annabelle.thinker.loop.action_log import ToolAction


class ToolRun(BaseModel):
    """A run of calls of one tool, as a parked turn stores it."""

    model_config = ConfigDict(frozen=True)

    tool: str = ""
    in_a_row: int = 0
    without_news: int = 0
    seen: tuple[str, ...] = ()


class RepetitionTracker:
    """Counts consecutive calls of one tool.

    A call brings news when neither its arguments nor its result were seen before in the run. `without_news` counts the
    calls since the last one that did, that one included.
    """

    def __init__(self, run: ToolRun | None = None) -> None:
        run = run or ToolRun()
        self.tool, self.in_a_row, self.without_news = run.tool, run.in_a_row, run.without_news
        self._seen = set(run.seen)

    def record_call(self, tool: str, arguments: JsonObject, result: str) -> None:
        if tool != self.tool:
            self.tool = tool
            self.in_a_row = self.without_news = 0
            self._seen = set[str]()
        marks = {_fingerprint("a:" + json.dumps(arguments, sort_keys=True, default=str)), _fingerprint("r:" + result)}
        news = self._seen.isdisjoint(marks)
        self._seen |= marks
        self.in_a_row += 1
        self.without_news = 1 if news else self.without_news + 1

    def to_run(self) -> ToolRun:
        return ToolRun(
            tool=self.tool, in_a_row=self.in_a_row, without_news=self.without_news, seen=tuple(sorted(self._seen))
        )


def _fingerprint(text: str) -> str:
    """A hash, so that a parked turn does not store every result twice."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(slots=True)
class TurnProgress:
    """The state of one run of the loop."""

    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    step: int = 0
    tool_calls: int = 0
    mistakes: int = 0
    seconds: float = 0.0
    usage: TokenUsage = field(default_factory=TokenUsage)
    earlier: TokenUsage = field(default_factory=TokenUsage)
    """Usage before the turn was parked; already accounted for."""
    tools_used: list[str] = field(default_factory=list[str])
    actions: list[ToolAction] = field(default_factory=list[ToolAction])
    """Every call with its outcome: what an answer may claim."""
    second_chance: bool = False
    """Whether an answer of this turn was sent back; that happens at most once."""
    unknown_outcomes: list[str] = field(default_factory=list[str])
    last_text: str = ""
    last_result: str = ""
    repetition: RepetitionTracker = field(default_factory=RepetitionTracker)

    @property
    def spent(self) -> TokenUsage:
        """The usage of the whole turn, also before it was parked."""
        return self.earlier + self.usage

    def add_used_tool(self, tool: str) -> None:
        if tool not in self.tools_used:
            self.tools_used.append(tool)


@dataclass(frozen=True, slots=True)
class LoopOutcome:
    """The text for the person, or the error instead of it."""

    text: str
    limit: str | None = None
    sent_by_tool: bool = False
    error: ErrorBody | None = None
    parked: ParkedTurn | None = None
    """Set when the turn waits for the person; `text` is the question then."""


MAX_PARALLEL_CALLS: Final = 16
"""Maximum of calls in one step; the model is told to make the others in the next step."""
SHOWN_RESULT_CHARS: Final = 1_500
"""How much of the last tool result a person is shown."""


@dataclass(frozen=True, slots=True)
class LimitStop:
    """The limit that was reached, and the sentence for the person."""

    limit: str
    sentence: str


def check_before_step(progress: TurnProgress, limits: TurnLimits, token_budget: int | None = None) -> LimitStop | None:
    """The limit that forbids another model call, or None."""
    used = progress.spent.input_tokens + progress.spent.output_tokens
    if token_budget is not None and used >= token_budget:
        return LimitStop(
            "token_budget", f"I stopped because the {token_budget} tokens for this turn are used up ({used})."
        )
    if progress.seconds >= limits.wall_clock_seconds:
        return stop_for_wall_clock(limits)
    if progress.step >= limits.max_steps:
        return LimitStop("max_steps", f"I stopped after {limits.max_steps} steps, the most one turn may take.")
    return None


def check_after_tools(progress: TurnProgress, limits: TurnLimits) -> LimitStop | None:
    """The limit that the tool calls have reached, or None."""
    run = progress.repetition
    if progress.mistakes >= limits.consecutive_mistakes:
        return LimitStop(
            "consecutive_mistakes",
            f"I stopped because {progress.mistakes} tool calls in a row failed.",
        )
    if run.without_news >= limits.same_tool_in_a_row:
        return LimitStop(
            "same_tool_in_a_row",
            f"I stopped because {run.tool} was called {run.without_news} times in a row without anything new.",
        )
    if run.in_a_row >= limits.same_tool_with_news:
        return LimitStop(
            "same_tool_with_news", f"I stopped because {run.tool} was called {run.in_a_row} times in a row."
        )
    return None


def stop_for_tool_calls(limits: TurnLimits) -> LimitStop:
    return LimitStop(
        "max_tool_calls", f"I stopped after {limits.max_tool_calls} tool calls, the most one turn may make."
    )


def stop_for_wall_clock(limits: TurnLimits) -> LimitStop:
    return LimitStop(
        "wall_clock", f"I stopped because the time for one turn, {limits.wall_clock_seconds:g} seconds, is used up."
    )


def format_stop(stop: LimitStop, progress: TurnProgress) -> str:
    """The text for the person: what there is so far, and why the turn ended."""
    parts = [progress.last_text] if progress.last_text else []
    parts.append(stop.sentence)
    if progress.last_result:
        cut = progress.last_result[:SHOWN_RESULT_CHARS]
        parts.append(f"The last tool result was:\n{cut}{'…' if len(progress.last_result) > len(cut) else ''}")
    return "\n\n".join(parts)
