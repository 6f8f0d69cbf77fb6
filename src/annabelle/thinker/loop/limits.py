"""What ends a turn early, each with the sentence the person reads (LOOP-02, LOOP-10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from annabelle.core.contract import TurnLimits
from annabelle.thinker.loop.progress import Progress

MOST_AT_ONCE: Final = 16
"""Calls of one step that are made; a model that asks for more is asked to go on in the next step."""
GATHERED_CHARS: Final = 1_500
"""How much of the last tool result a person is shown."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The limit that was reached, and how to say so."""

    limit: str
    sentence: str


def before_step(progress: Progress, limits: TurnLimits, token_budget: int | None = None) -> Stop | None:
    """Whether another model call is allowed."""
    used = progress.spent.input_tokens + progress.spent.output_tokens
    if token_budget is not None and used >= token_budget:
        return Stop("token_budget", f"I stopped because the {token_budget} tokens for this turn are used up ({used}).")
    if progress.seconds >= limits.wall_clock_seconds:
        return wall_clock(limits)
    if progress.step >= limits.max_steps:
        return Stop("max_steps", f"I stopped after {limits.max_steps} steps, the most one turn may take.")
    return None


def after_tools(progress: Progress, limits: TurnLimits) -> Stop | None:
    """Whether what the tools returned is reason to stop."""
    run = progress.repetition
    if progress.mistakes >= limits.consecutive_mistakes:
        return Stop(
            "consecutive_mistakes",
            f"I stopped because {progress.mistakes} tool calls in a row failed.",
        )
    if run.without_news >= limits.same_tool_in_a_row:
        return Stop(
            "same_tool_in_a_row",
            f"I stopped because {run.tool} was called {run.without_news} times in a row without anything new.",
        )
    if run.in_a_row >= limits.same_tool_with_news:
        return Stop("same_tool_with_news", f"I stopped because {run.tool} was called {run.in_a_row} times in a row.")
    return None


def tool_calls(limits: TurnLimits) -> Stop:
    return Stop("max_tool_calls", f"I stopped after {limits.max_tool_calls} tool calls, the most one turn may make.")


def wall_clock(limits: TurnLimits) -> Stop:
    return Stop(
        "wall_clock", f"I stopped because the time for one turn, {limits.wall_clock_seconds:g} seconds, is used up."
    )


def gathered(stop: Stop, progress: Progress) -> str:
    """What the person gets instead of an answer: what there is so far, and why it ends here."""
    parts = [progress.last_text] if progress.last_text else []
    parts.append(stop.sentence)
    if progress.last_result:
        cut = progress.last_result[:GATHERED_CHARS]
        parts.append(f"The last tool result was:\n{cut}{'…' if len(progress.last_result) > len(cut) else ''}")
    return "\n\n".join(parts)
