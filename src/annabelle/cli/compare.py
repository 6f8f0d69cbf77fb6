"""`annabelle compare`: runs recorded conversations with and without the thinking phase (CMP-08)."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_line, print_paragraph, print_table
from annabelle.core.contract import ThinkingSettings
from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.core.home import Home
from annabelle.thinker.compression.comparison import (
    ComparisonResult,
    Trajectory,
    compare_trajectory,
    estimate_cost,
    load_recorded_session,
    read_trajectories,
)
from annabelle.thinker.compression.strategies import STRATEGIES

_FEWEST_TOKENS = 500
_SHOWN_LOSSES = 20

app = command_app()


@app.command()
def compare(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE…", help="Recorded conversations: JSON lines in the format of OpenAI, or .gz."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="THREAD", help="A conversation of this home, by its thread id.")
    ] = None,
    strategy: Annotated[str, typer.Option("--strategy", help=f"How to shorten: {', '.join(STRATEGIES)}.")] = "adaptive",
    budget: Annotated[
        int, typer.Option("--budget", metavar="TOKENS", help="Shorten a conversation that is longer than this.")
    ] = 12_000,
    model: Annotated[
        str, typer.Option("--model", help="Whose tokens and prices count, as in openai:gpt-5-mini.")
    ] = "openai:gpt-5-mini",
    json: Json = False,
) -> None:
    """Compare recorded conversations with and without the thinking phase: tokens, cost, time, what is lost."""
    if strategy not in STRATEGIES:
        raise InvalidArguments(
            f"There is no strategy {strategy!r}.", hint=f"Choose one of {', '.join(STRATEGIES)}.", field="--strategy"
        )
    if budget < _FEWEST_TOKENS:
        raise InvalidArguments(f"The budget must be {_FEWEST_TOKENS} tokens or more.", field="--budget")
    trajectories = _load_trajectories(files or [], session)
    settings = ThinkingSettings(strategy=strategy, threshold_tokens=budget)
    outcomes = asyncio.run(_compare(trajectories, settings, model, quiet=json))
    if json:
        print_json(_as_json(outcomes, settings, model))
    else:
        _show(outcomes, model)


def _load_trajectories(files: Sequence[Path], session: str | None) -> list[Trajectory]:
    if not files and session is None:
        raise InvalidArguments("Nothing to compare is named.", hint="Give a FILE, or --session THREAD.", field="FILE")
    found = [trajectory for file in files for trajectory in read_trajectories(file)]
    if session is not None:
        kept = load_recorded_session(Home.from_environment(), session)
        if kept is None:
            raise NotFound(
                f"No conversation {session!r} is recorded in this home.",
                hint="Thread ids are the names of the files in agents/*/sessions, without .jsonl.",
            )
        found.append(kept)
    if not found:
        raise InvalidArguments("There is no conversation in what was named.", field="FILE")
    return found


async def _compare(
    trajectories: Sequence[Trajectory], settings: ThinkingSettings, model: str, *, quiet: bool
) -> list[ComparisonResult]:
    outcomes: list[ComparisonResult] = []
    with Progress(
        TextColumn("Comparing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("", total=len(trajectories))
        for trajectory in trajectories:
            outcomes.append(await compare_trajectory(trajectory, settings, model))
            progress.advance(task)
    return outcomes


def _show(outcomes: Sequence[ComparisonResult], model: str) -> None:
    rows = [_row(one.id, [one], model) for one in outcomes]
    if len(outcomes) > 1:
        rows.append(_row("all", outcomes, model))
    print_table(("CONVERSATION", "REQUESTS", "TOKENS", "WITH", "SAVED", "COST", "WITH", "TIME", "SAME OUTCOME"), rows)
    shortened = sum(one.shortened for one in outcomes)
    print_paragraph(
        f"{shortened} of {sum(one.requests for one in outcomes)} requests were shortened, by rules alone and without a "
        "call. The outcome is the same when every recorded tool call still finds what it was called with."
    )
    missing = Counter((tool, value) for one in outcomes for tool, value in one.lost)
    for (tool, value), times in missing.most_common(_SHOWN_LOSSES):
        print_line(f"lost: {clean(value)}, which {clean(tool)} was called with" + (f", {times} times" * (times > 1)))
    if len(missing) > _SHOWN_LOSSES:
        print_line(f"and {len(missing) - _SHOWN_LOSSES} more; --json has them all.")


def _row(name: str, outcomes: Sequence[ComparisonResult], model: str) -> tuple[str, ...]:
    without, with_ = sum(one.tokens_without for one in outcomes), sum(one.tokens_with for one in outcomes)
    answered = sum(one.output_tokens for one in outcomes)
    same = sum(one.same for one in outcomes)
    return (
        clean(name),
        str(sum(one.requests for one in outcomes)),
        f"{without:,}",
        f"{with_:,}",
        f"{1 - with_ / without:.0%}" if without else "–",
        _dollars(estimate_cost(model, without, answered)),
        _dollars(estimate_cost(model, with_, answered)),
        f"{sum(one.milliseconds for one in outcomes) / 1000:.2f} s",
        f"{same} of {len(outcomes)}" if len(outcomes) > 1 else "yes" if same else "no",
    )


def _as_json(outcomes: Sequence[ComparisonResult], settings: ThinkingSettings, model: str) -> dict[str, object]:
    without, with_ = sum(one.tokens_without for one in outcomes), sum(one.tokens_with for one in outcomes)
    answered = sum(one.output_tokens for one in outcomes)
    return {
        "strategy": settings.strategy,
        "budget": settings.threshold_tokens,
        "model": model,
        "tokens": {"without": without, "with": with_},
        "cost_usd": {"without": estimate_cost(model, without, answered), "with": estimate_cost(model, with_, answered)},
        "model_calls": {
            "without": sum(one.requests for one in outcomes),
            "with": sum(one.requests + one.calls for one in outcomes),
        },
        "thinking_ms": round(sum(one.milliseconds for one in outcomes), 1),
        "same_outcome": sum(one.same for one in outcomes),
        "kept": round(1 - sum(len(one.lost) for one in outcomes) / max(1, sum(one.needed for one in outcomes)), 4),
        "conversations": [{**asdict(one), "same": one.same} for one in outcomes],
    }


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:.4f}"
