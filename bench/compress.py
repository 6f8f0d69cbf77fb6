"""How well long conversations are shortened: recorded ones, cut right before each later tool call.

    .venv/bin/python bench/compress.py --data DIR [--budget 3000] [--judged adaptive] [--lost]

DIR holds trajectories*.jsonl or .jsonl.gz: conversations in the format of OpenAI, one per line. Beside our strategies
two usual ways run over the same conversations: the latest messages that fit, and old results cut to their beginning.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelRequest

import compress_baselines
from annabelle.llm.token_estimate import estimate_tokens
from annabelle.thinker.compression.comparison import Trajectory, read_trajectories
from annabelle.thinker.compression.context_loss import CallMoment, find_lost_values, is_valid_chain, iterate_moments
from annabelle.thinker.compression.message_text import render_messages
from annabelle.thinker.compression.strategies import STRATEGIES, CompressionMeasures
from measure import Report, percentile

Way = Callable[[list[ModelMessage], ModelRequest, int], list[ModelMessage]]


@dataclass
class Tally:
    """What came out of one way."""

    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    needed: int = 0
    lost: int = 0
    later_needed: int = 0
    later_lost: int = 0
    invalid: int = 0
    without_first: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, way: Way, moment: CallMoment, later: frozenset[str], budget: int) -> None:
        began = time.process_time()
        after = way(moment.before, moment.goal, budget)
        self.milliseconds.append((time.process_time() - began) * 1000)
        self.before.append(estimate_tokens(moment.before))
        self.after.append(estimate_tokens(after))
        missing = find_lost_values(moment.needed, after)
        self.needed += len(moment.needed)
        self.lost += len(missing)
        self.later_needed += len(later)
        self.later_lost += len(find_lost_values(later, after))
        self.invalid += not is_valid_chain(after)
        self.without_first += not _has_first(moment.before, after)
        self.examples += sorted(missing)

    @property
    def kept(self) -> float:
        return 1 - self.lost / max(1, self.needed)

    @property
    def kept_later(self) -> float:
        return 1 - self.later_lost / max(1, self.later_needed)


def _has_first(before: list[ModelMessage], after: list[ModelMessage]) -> bool:
    first = next(one for one in before if any(part.part_kind == "user-prompt" for part in one.parts))
    return render_messages([first]) in render_messages(after)


def _cases(trajectory: Trajectory, budget: int) -> list[tuple[CallMoment, frozenset[str]]]:
    """The moments above the budget, each with what all calls from there on take out of what was before."""
    every = list(iterate_moments(trajectory.messages))
    cases: list[tuple[CallMoment, frozenset[str]]] = []
    for place, moment in enumerate(every):
        if estimate_tokens(moment.before) > budget:
            later = frozenset(value for one in every[place:] for value in one.needed)
            cases.append((moment, later - find_lost_values(later, moment.before)))
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--budget", type=int, default=3_000)
    parser.add_argument("--judged", default="adaptive", choices=list(STRATEGIES))
    parser.add_argument("--lost", action="store_true", help="show what was lost")
    given = parser.parse_args()
    ways: dict[str, Way] = {
        name: lambda messages, goal, budget, way=strategy: way.compress(messages, goal, budget, CompressionMeasures())
        for name, strategy in STRATEGIES.items()
    }
    ways |= {"latest that fit": compress_baselines.latest, "old results cut": compress_baselines.old_results_cut}
    tallies = {name: Tally() for name in ways}
    files = sorted(given.data.glob("trajectories*.jsonl*"))
    for trajectory in (trajectory for file in files for trajectory in read_trajectories(file)):
        for moment, later in _cases(trajectory, given.budget):
            for name, way in ways.items():
                tallies[name].add(way, moment, later, given.budget)
    if not tallies[given.judged].after:
        raise SystemExit(f"No conversation in {given.data} is longer than {given.budget} tokens before a call.")
    report = Report("compress")
    for name, tally in tallies.items():
        label = name.replace(" ", "_")
        mean = sum(tally.after) / len(tally.after)
        report.figures[f"{label}_tokens"] = mean
        report.figures[f"{label}_ms_p95"] = percentile(tally.milliseconds, 0.95)
        report.ratios[f"{label}_kept"] = tally.kept
        report.ratios[f"{label}_kept_later"] = tally.kept_later
        print(
            f"{name:16} {sum(tally.before) / len(tally.before):6.0f} → {mean:6.0f} tokens, kept {tally.kept:.3f} "
            f"(of all later {tally.kept_later:.3f}), invalid {tally.invalid}, without the first {tally.without_first}"
        )
        if given.lost:
            print("    ", ", ".join(tally.examples[:40]))
    judged = tallies[given.judged]
    report.figures["moments"] = len(judged.after)
    report.within("invalid chains", judged.invalid, 0)
    report.within("conversations without the user's first message", judged.without_first, 0)
    report.within("tokens after, on average", report.figures[f"{given.judged}_tokens"], 2_300)
    report.within("share of what the next call needs that is kept", judged.kept, 0.95, at_least=True)
    report.within_time("CPU, p95", percentile(judged.milliseconds, 0.95), 60, cpu=True)
    report.print()


if __name__ == "__main__":
    main()
